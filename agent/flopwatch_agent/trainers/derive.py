"""What follows from the facts of a run: world size, tokens of a step, model shape, the wire's ``RunFacts``."""

from collections.abc import Mapping
from typing import Any

from flopwatch.wire import JobKind, RunFacts
from flopwatch_agent.trainers.facts import Fact, integer
from flopwatch_agent.trainers.facts_table import FLAVORS

Facts = Mapping[str, Fact]

_GATED_MODELS = (
    "llama",
    "qwen",
    "mistral",
    "mixtral",
    "gemma",
    "deepseek",
    "phi3",
    "olmo",
    "yi",
    "internlm",
    "glm",
)
_LLAMA_3 = (None, "llama3")
"""Families whose flavors' sizes are known."""
_PARALLEL = ("data_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel")


def world_size(facts: Facts) -> int | None:
    """GPUs of the run: printed, or a product or quotient of printed sizes."""
    stated = integer(facts, "world_size")
    if stated is not None:
        return stated
    sizes = [integer(facts, name) for name in _PARALLEL]
    if sizes[0] is not None:
        product = 1
        for size in sizes:
            product *= size or 1
        return product
    nodes, gpus = integer(facts, "nodes"), integer(facts, "gpus_per_node")
    if nodes and gpus:
        return nodes * gpus
    whole, part = integer(facts, "tokens_per_micro_batch"), integer(facts, "tokens_per_rank_batch")
    if whole and part and whole % part == 0:
        return whole // part
    return _batch_quotient(facts)


def _batch_quotient(facts: Facts) -> int | None:
    batch, micro = integer(facts, "global_batch_size"), integer(facts, "micro_batch_size")
    accumulation = integer(facts, "gradient_accumulation_steps")
    if not (batch and micro and accumulation) or batch % (micro * accumulation):
        return None
    return batch // (micro * accumulation)


def model_parallel_size(facts: Facts) -> int:
    """Ranks that share one data-parallel replica."""
    size = 1
    for name in _PARALLEL[1:]:
        size *= integer(facts, name) or 1
    return size


def global_batch_size(facts: Facts) -> int | None:
    """Sequences of one optimizer step over all ranks."""
    stated = integer(facts, "global_batch_size")
    if stated is not None:
        return stated
    world = world_size(facts)
    if world is None:
        return None
    replicas = max(world // model_parallel_size(facts), 1)
    per_device = facts.get("per_device_batch_size")
    if isinstance(per_device, int | float) and per_device > 0:
        return round(per_device * world)
    micro = integer(facts, "micro_batch_size")
    accumulation = integer(facts, "gradient_accumulation_steps")
    if micro and accumulation:
        return micro * accumulation * replicas
    legacy = integer(facts, "batch_size")
    return legacy * replicas if legacy else None


def micro_batches(facts: Facts, family: str | None) -> int | None:
    """Micro batches of an optimizer step that follow one another through a rank's pipeline.

    torchtitan's local batch is cut anew for the pipeline, so only what it says of that counts.
    """
    stated, cut = integer(facts, "pipeline_microbatches"), integer(facts, "pipeline_microbatch_size")
    micro = integer(facts, "micro_batch_size")
    if stated is not None or cut is not None or family == "torchtitan":
        return stated or (micro // cut if micro and cut and micro % cut == 0 else None)
    accumulation = integer(facts, "gradient_accumulation_steps")
    if accumulation is not None:
        return accumulation
    batch, world = global_batch_size(facts), world_size(facts)
    if not (batch and world and micro):
        return None
    whole, rest = divmod(batch, micro * max(world // model_parallel_size(facts), 1))
    return whole if whole and not rest else None


def tokens_per_step(facts: Facts) -> int | None:
    """Positions of one optimizer step over all ranks."""
    stated = integer(facts, "tokens_per_step")
    if stated is not None:
        return stated
    batch, length = global_batch_size(facts), integer(facts, "seq_length")
    return batch * length if batch and length else None


def shape(facts: Facts) -> dict[str, Any] | None:
    """The model's shape by the names of ``ModelShape.from_dict``; ``None`` without width and depth."""
    known = dict(facts)
    flavor = FLAVORS.get(str(facts.get("flavor"))) if facts.get("model_family") in _LLAMA_3 else None
    if flavor and "hidden" not in known:
        names = ("hidden", "n_layers", "n_heads", "n_kv_heads", "ffn_hidden", "vocab")
        known.update(zip(names, flavor, strict=True))
    hidden, layers = integer(known, "hidden"), integer(known, "n_layers")
    if hidden is None or layers is None:
        return None
    found: dict[str, Any] = {"hidden": hidden, "n_layers": layers}
    heads = integer(known, "n_heads")
    grouped = known.get("group_query_attention") is not False
    optional = {
        "ffn_hidden": integer(known, "ffn_hidden")
        or _llama_ffn(known, hidden)
        or _relative_ffn(known, hidden)
        or _default_ffn(known, hidden),
        "n_heads": heads,
        "n_kv_heads": (integer(known, "n_kv_heads") if grouped else None) or heads,
        "head_dim": integer(known, "head_dim") or (hidden // heads if heads else None),
        "vocab": integer(known, "vocab") or integer(known, "padded_vocab_used"),
        "padded_vocab_used": integer(known, "padded_vocab_used"),
        "seq_len": integer(known, "seq_length"),
        "gated_mlp": _gated(known, flavor is not None),
        "tied_embeddings": _tied(known),
        "mtp_layers": integer(known, "mtp_layers"),
        "moe": _experts(known),
        "mla": _latent_attention(known),
    }
    found.update({name: value for name, value in optional.items() if value is not None})
    return found


def _relative_ffn(facts: Facts, hidden: int) -> int | None:
    """From OLMo's width over gate and value together, its ratio to the model's width, or MPT's ratio."""
    fused, ratio = integer(facts, "fused_ffn"), integer(facts, "mlp_ratio")
    if fused or ratio:
        width = fused or (ratio or 0) * hidden
        return width // 2 if _gated(facts, flavored=False) else width
    expansion = facts.get("expansion_ratio")
    return round(expansion * hidden) if isinstance(expansion, int | float) and expansion > 0 else None


def _default_ffn(facts: Facts, hidden: int) -> int | None:
    """Four times the width, where Megatron's arguments or a GPT-2-like configuration name no other."""
    return 4 * hidden if facts.get("megatron_arguments") or facts.get("gpt_style") else None


def complete_shape(facts: Facts) -> dict[str, Any] | None:
    """The shape, where it has all that ``ModelShape.from_dict`` needs."""
    found = shape(facts)
    needed = ("n_heads", "vocab", "ffn_hidden", "gated_mlp")
    return found if found is not None and all(name in found for name in needed) else None


def _llama_ffn(facts: Facts, hidden: int) -> int | None:
    multiple = integer(facts, "multiple_of")
    if multiple is None:
        return None
    factor = facts.get("ffn_dim_multiplier")
    width = int(8 * hidden / 3)
    if isinstance(factor, int | float) and not isinstance(factor, bool):
        width = int(factor * width)
    return multiple * -(-width // multiple)


def _gated(facts: Facts, flavored: bool) -> bool | None:  # noqa: FBT001 - a private predicate
    if isinstance(facts.get("swiglu"), bool):
        return bool(facts["swiglu"])
    activation = facts.get("glu_activation")
    if isinstance(activation, str) and activation not in ("silu", "swish"):
        return activation.endswith("glu")
    if isinstance(facts.get("mlp_class"), str):
        return facts["mlp_class"] in ("LLaMAMLP", "GemmaMLP")
    if "expansion_ratio" in facts:
        return facts.get("ffn_type") == "mptglu"
    model = str(facts.get("model_type", "")).lower()
    if model.startswith(_GATED_MODELS) or "multiple_of" in facts or flavored:
        return True
    activations = facts.get("mlp_activations")
    if isinstance(activations, str):
        return "linear" in activations
    if facts.get("megatron_arguments") or facts.get("gpt_style"):
        return False
    hidden_act = facts.get("hidden_act")
    return hidden_act in ("silu", "swish") if isinstance(hidden_act, str) else None


def _tied(facts: Facts) -> bool | None:
    untied = facts.get("untied_embeddings")
    if isinstance(untied, bool):
        return not untied
    tied = facts.get("tied_embeddings")
    return tied if isinstance(tied, bool) else None


def _experts(facts: Facts) -> dict[str, int] | None:
    experts, chosen = integer(facts, "n_experts"), integer(facts, "top_k")
    if experts is None or chosen is None or experts < 2:
        return None
    width = integer(facts, "expert_ffn") or integer(facts, "ffn_hidden")
    if width is None:
        return None
    shared = integer(facts, "shared_expert_ffn") or 0
    return {"n_experts": experts, "top_k": chosen, "expert_ffn": width, "shared_expert_ffn": shared}


def _latent_attention(facts: Facts) -> dict[str, int] | None:
    sizes = {name: integer(facts, name) for name in ("q_lora", "kv_lora", "nope", "rope", "v")}
    if not sizes["kv_lora"]:
        return None
    return {name: size for name, size in sizes.items() if size is not None}


def parameter_count(facts: Facts) -> int | None:
    """Parameters of the model as printed."""
    for name, scale in (
        ("num_params", 1.0), ("billions", 1e9), ("millions", 1e6),
    ):  # fmt: skip
        value = facts.get(name)
        if isinstance(value, int | float) and value > 0:
            return round(value * scale)
    trained, frozen = trained_parameter_count(facts), integer(facts, "frozen_params")
    if trained is not None:
        return trained + (frozen or 0)
    whole = "tensor_parallel" in facts and model_parallel_size(facts) == 1
    return integer(facts, "rank_params") if whole else None


def trained_parameter_count(facts: Facts) -> int | None:
    """Parameters that are trained, as printed."""
    millions = facts.get("trainable_millions")
    if isinstance(millions, int | float) and millions > 0:
        return round(millions * 1e6)
    return integer(facts, "trainable_params")


def precision(facts: Facts) -> str | None:
    """The fastest number format the log declares."""
    declared = facts.get("dtype")
    if isinstance(declared, str):
        return declared
    for name in ("fp4", "fp8"):
        if facts.get(name):
            return name
    for name in ("bf16", "fp16"):
        if facts.get(name) is True or name in str(facts.get("precision_name", "")):
            return name
    return None


def recompute(facts: Facts) -> str | None:
    """``full`` or ``selective`` activation recomputation, ``None`` when the log does not tell."""
    granularity = facts.get("recompute_granularity")
    if isinstance(granularity, str):
        return granularity
    for name in ("checkpoint_activations", "gradient_checkpointing"):
        if facts.get(name) is True:
            return "full"
    return None


def run_facts(
    facts: Facts, *, family: str | None, origin: str | None, session: int, kind: JobKind
) -> RunFacts:
    """The wire's form of the facts; the numbers that were not found stay unknown."""
    flops = facts.get("flops_per_token")
    peak = facts.get("peak_flops") or _peak_from_tera(facts)
    dtype = precision(facts)
    return RunFacts(
        source="log",
        origin=origin or "log",
        trainer=family,
        parameter_count=parameter_count(facts),
        trained_parameter_count=trained_parameter_count(facts),
        flops_per_token=float(flops) if isinstance(flops, int | float) else None,
        world_size=world_size(facts),
        global_batch_size=global_batch_size(facts),
        sequence_length=integer(facts, "seq_length"),
        tokens_per_step=tokens_per_step(facts),
        micro_batches=micro_batches(facts, family),
        dtype=dtype,
        dtype_basis="log" if dtype else None,
        tensor_parallel=integer(facts, "tensor_parallel"),
        pipeline_parallel=integer(facts, "pipeline_parallel"),
        pipeline_chunks=integer(facts, "pipeline_chunks"),
        context_parallel=integer(facts, "context_parallel"),
        expert_parallel=integer(facts, "expert_parallel"),
        data_parallel=integer(facts, "data_parallel"),
        activation_recompute=recompute(facts),
        trainer_peak_flops=float(peak) if isinstance(peak, int | float) else None,
        kind=kind,
        session=session,
    )


def _peak_from_tera(facts: Facts) -> float | None:
    tera = facts.get("peak_tflops")
    return tera * 1e12 if isinstance(tera, int | float) else None
