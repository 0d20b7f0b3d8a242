"""What runs on the simulated cluster, and what befalls it."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from flopwatch.accelerators import by_name
from flopwatch.flops import ModelShape, flops_per_token
from flopwatch.parameters import count

GPU_MODEL = "NVIDIA H100 80GB HBM3"
UNKNOWN_GPU_MODEL = "NVIDIA GX-PREVIEW 96GB"
"""A name that no accelerator table holds: its jobs have steps and no MFU."""
GPUS_PER_NODE = 8
GPU_MEMORY_BYTES = 80e9
STATE_BYTES_PER_PARAMETER = 16.0
"""Adam in mixed precision: weights and gradients of 2 bytes, a master copy and two moments of 4 each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """A model that people train, with its usual batch."""

    name: str
    shape: dict[str, Any]
    sequence_length: int
    global_batch_size: int
    """Sequences a step."""
    tensor_parallel: int = 1
    recompute: str | None = None
    """What its trainer says that it computes a second time."""

    def data_parallel(self, gpus: int) -> int:
        """Replicas of the model on so many GPUs."""
        return max(1, gpus // self.tensor_parallel)

    def trains_on(self, gpus: int) -> bool:
        """Whether weights, gradients and optimizer state leave a fifth of the GPUs' memory to the rest."""
        parameters = count(ModelShape.from_dict(self.shape)).total
        return parameters * STATE_BYTES_PER_PARAMETER <= 0.8 * gpus * GPU_MEMORY_BYTES

    def fitting(self, gpus: int) -> "Model":
        """The model with the nearest batch that its replicas can share evenly."""
        replicas = self.data_parallel(gpus)
        return replace(self, global_batch_size=max(1, round(self.global_batch_size / replicas)) * replicas)

    def tokens_per_step(self) -> int:
        """Positions a step over all ranks."""
        return self.sequence_length * self.global_batch_size

    def step_seconds(self, mfu_ratio: float, gpus: int) -> float:
        """How long a step takes at an MFU (causal count, dense bf16 peak)."""
        accelerator = by_name(GPU_MODEL)
        peak = accelerator.peak_flops("bf16") if accelerator else None
        if peak is None:
            raise LookupError(f"no bf16 peak for {GPU_MODEL}")
        per_token = flops_per_token(ModelShape.from_dict(self.shape), self.sequence_length)
        return per_token * self.tokens_per_step() / (mfu_ratio * peak * gpus)


def _shape(
    layers: int, widths: tuple[int, int], heads: tuple[int, int], vocab: int, **more: Any
) -> dict[str, Any]:
    """Keys of ``ModelShape.from_dict``: ``widths`` are hidden and FFN, ``heads`` query and key-value heads."""
    return {
        "n_layers": layers, "hidden": widths[0], "ffn_hidden": widths[1], "n_heads": heads[0], "n_kv_heads": heads[1],
        "head_dim": widths[0] // heads[0], "vocab": vocab, "gated_mlp": True, "tied_embeddings": False, **more,
    }  # fmt: skip


_EXPERTS = {"n_experts": 8, "top_k": 2, "expert_ffn": 16384, "shared_expert_ffn": 0, "first_dense_layers": 0}

LLAMA_70B = Model(
    name="Llama-3-70B",
    shape=_shape(80, (8192, 28672), (64, 8), 128_256, seq_len=8192),
    sequence_length=8192,
    global_batch_size=512,
    tensor_parallel=8,
    recompute="selective",
)
LLAMA_8B = Model(
    name="Llama-3-8B",
    shape=_shape(32, (4096, 14336), (32, 8), 128_256, seq_len=8192),
    sequence_length=8192,
    global_batch_size=512,
    tensor_parallel=2,
)
MIXTRAL_8X22B = Model(
    name="Mixtral-8x22B",
    shape=_shape(56, (6144, 16384), (48, 8), 32_768, seq_len=4096, moe=_EXPERTS),
    sequence_length=4096,
    global_batch_size=1024,
    tensor_parallel=8,
)
QWEN_7B = Model(
    name="Qwen2-7B",
    shape=_shape(28, (3584, 18944), (28, 4), 152_064, seq_len=4096),
    sequence_length=4096,
    global_batch_size=512,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """The run dies at ``at_seconds`` and steps again ``down_seconds`` later, from its last checkpoint."""

    at_seconds: float
    down_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One job of the simulated cluster. Times are epoch seconds; ``end_seconds`` ``None``: it goes on."""

    number: int
    name: str
    user: str
    account: str
    nodes: tuple[int, ...]
    start_seconds: float
    end_seconds: float | None
    kind: Literal["pretrain", "finetune", "unknown", "interactive"] = "pretrain"
    model: Model | None = None
    """``None``: the job prints no steps."""
    mfu_ratio: float = 0.42
    target_ratio: float | None = None
    startup_seconds: float = 240.0
    checkpoint_every_seconds: float = 3600.0
    checkpoint_seconds: float = 45.0
    evaluate_every_seconds: float | None = None
    evaluate_seconds: float = 120.0
    data_wait_ratio: float = 0.0
    """Share of each step that waits for input."""
    slow_node: int | None = None
    """A node whose GPUs throttle, so that every step of the run is slow."""
    hang_at_seconds: float | None = None
    idle_from_seconds: float | None = None
    """From here on its processes hold the GPUs and do nothing."""
    failures: tuple[Failure, ...] = ()

    def gpus(self) -> int:
        """World size."""
        return len(self.nodes) * GPUS_PER_NODE

    def step_seconds(self) -> float | None:
        """Seconds a step takes; ``None`` for a job without steps."""
        return self.model.step_seconds(self.mfu_ratio, self.gpus()) if self.model else None
