"""Reading a Hugging Face config so that nothing that decides the count is passed over in silence."""

from collections.abc import Mapping
from typing import Any

from flopwatch.blocks import ShapeError, require_whole

DECIDING = frozenset({
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_tok",
    "experts_per_token", "n_shared_experts", "num_shared_experts", "moe_intermediate_size", "expert_ffn_hidden_size",
    "shared_expert_intermediate_size", "shared_intermediate_size", "first_k_dense_replace", "moe_layer_freq",
    "decoder_sparse_step", "mlp_only_layers", "moe_layers", "interleave_moe_layer_step", "intermediate_size_mlp",
    "kv_lora_rank", "q_lora_rank", "sliding_window", "sliding_window_pattern", "layer_types", "attention_chunk_size",
    "window_size", "attention_window", "local_attention", "global_attn_every_n_layers", "num_nextn_predict_layers",
    "mtp_num_layers", "mamba_d_state", "ssm_state_size", "state_size", "linear_num_key_heads", "attn_layer_period",
    "attn_layer_indices", "layers_block_type", "hybrid_override_pattern", "block_types", "attention_types",
    "cross_attention_layers", "cross_attention_hidden_size", "encoder_layers", "vision_config", "audio_config",
    "index_topk", "num_kv_shared_layers", "hidden_size_per_layer_input", "laurel_rank", "altup_num_inputs",
    "use_bidirectional_attention", "use_double_wide_mlp", "moe_latent_size", "is_encoder_decoder", "block_configs",
    "attn_type_list", "full_attention_interval", "quantization_moe", "indexer", "add_cross_attention",
    "num_attention_heads_per_layer", "intermediate_sizes", "num_hash_layers", "word_embed_proj_dim",
})  # fmt: skip
"""Keys that change the FLOP count: a family that does not read one of them must not meet it with a value."""


class HfConfig:
    """A config whose keys are read by name; ``finish`` refuses deciding keys that nobody read."""

    def __init__(self, values: Mapping[str, Any], prefix: str = "") -> None:
        self._values = values
        self._prefix = prefix
        self._read: set[str] = set()

    def get(self, *names: str) -> Any:
        """The value of the first name that has one, else None; all names count as read."""
        self._read.update(names)
        return next((self._values[name] for name in names if self._values.get(name) is not None), None)

    def whole(self, *names: str, minimum: int = 1, default: int | None = None) -> int:
        """A whole number under the first name that has a value.

        Raises:
            ShapeError: it is missing without a default, or not a whole number of at least ``minimum``.
        """
        value = self.get(*names)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return require_whole(self._prefix + names[0], default if value is None else value, minimum)

    def flag(self, *names: str, default: bool = False) -> bool:
        """A yes or no.

        Raises:
            ShapeError: it is something else.
        """
        value = self.get(*names)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refused(names[0], "true or false")
        return value

    def part(self, name: str) -> "HfConfig":
        """A config inside this one.

        Raises:
            ShapeError: it is missing or no object.
        """
        value = self.get(name)
        if not isinstance(value, Mapping):
            raise self.refused(name, "an object")
        return HfConfig(value, f"{self._prefix}{name}.")

    def without(self, name: str) -> dict[str, Any]:
        """The values, one key left out."""
        return {key: value for key, value in self._values.items() if key != name}

    def numbers(self, name: str) -> list[int] | None:
        """A list of whole numbers, or None.

        Raises:
            ShapeError: it is something else.
        """
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            raise self.refused(name, "a list of whole numbers")
        return value

    def words(self, name: str, length: int) -> list[str] | None:
        """A list of one word a layer, or None.

        Raises:
            ShapeError: it is no list of ``length`` words.
        """
        value = self.get(name)
        if value is None:
            return None
        if (
            not isinstance(value, list)
            or len(value) != length
            or not all(isinstance(item, str) for item in value)
        ):
            raise self.refused(name, f"a list of {length} words")
        return value

    def refused(self, name: str, allowed: str) -> ShapeError:
        """The error that names a key, its value and what is allowed."""
        return ShapeError(self._prefix + name, self._values.get(name), allowed)

    def finish(self, family: str) -> None:
        """Check that no key that changes the count was passed over.

        Raises:
            ShapeError: naming the first such key.
        """
        for name in sorted(DECIDING & set(self._values)):
            if name not in self._read and self._values[name] not in (None, False, 0, [], {}):
                raise self.refused(name, f"absent in a config of model type {family!r}")
