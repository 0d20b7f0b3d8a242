"""The parts a model is made of: mixers (attention, state space), feed-forward networks, and blocks of both.

Counts are of matmul weights and of forward FLOPs per token; one multiply-add is two FLOPs.
"""

from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

LARGEST = 10**15
"""No size of a model is above it: numbers of foreign files stay countable."""
MOST_LAYERS = 10_000
"""Layers are looked at one by one, so a foreign file must not ask for a billion of them."""


class ShapeError(ValueError):
    """A model's description is not understood: the message has the field, its value and what is allowed."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(f"{field} is {value!r}; allowed: {allowed}")
        self.field = field
        self.allowed = allowed


def require_positive(part: object, *names: str) -> None:
    """Raise ``ShapeError`` unless each named field of ``part`` is a whole number of at least 1."""
    for name in names:
        require_whole(name, getattr(part, name), minimum=1)


def require_whole(name: str, value: object, minimum: int = 0, maximum: int = LARGEST) -> int:
    """``value`` as an int.

    Raises:
        ShapeError: it is not a whole number from ``minimum`` to ``maximum``.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        most = "" if maximum == LARGEST else f", at most {maximum}"
        raise ShapeError(name, value, f"a whole number of at least {minimum}{most}")
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class Mask:
    """Which keys a query meets. ``window`` keys back (itself included), or only its own ``chunk``."""

    causal: bool = True
    window: int | None = None
    chunk: int | None = None

    def __post_init__(self) -> None:
        for name in ("window", "chunk"):
            if getattr(self, name) is not None:
                require_positive(self, name)
        if not self.causal and self.window:
            raise ShapeError("window", self.window, "none in bidirectional attention; chunk divides it")

    def pairs(self, length: float) -> float:
        """Query-key pairs of one sequence.

        Bidirectional l^2; causal l^2/2 (the half of the square that FLOP counts use, not l(l+1)/2);
        window W < l: l*W - W(W-1)/2, never more than causal; chunks of C: the same inside each chunk.
        """
        if self.chunk is not None and self.chunk < length:
            whole, rest = divmod(length, self.chunk)
            return (whole * self.chunk**2 + rest**2) / (2 if self.causal else 1)
        if not self.causal:
            return length * length
        half = length * length / 2
        if self.window is not None and self.window < length:
            return min(half, length * self.window - self.window * (self.window - 1) / 2)
        return half


@dataclass(frozen=True, kw_only=True, slots=True)
class Attention:
    """Softmax attention with grouped keys and values: q, k, v and output projections.

    ``head_dim`` need not be hidden/heads. ``output_gate``: one more projection as wide as the query.
    ``key_value_hidden``: width of what keys and values are made from, when it is not the layer's own
    input (cross attention). ``own_keys`` false: keys and values are those of an earlier layer.
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_head_dim: int | None = None
    mask: Mask = Mask()
    output_gate: bool = False
    key_value_hidden: int | None = None
    own_keys: bool = True

    def __post_init__(self) -> None:
        require_positive(self, "heads", "kv_heads", "head_dim")
        if self.heads % self.kv_heads:
            raise ShapeError("n_kv_heads", self.kv_heads, f"a divisor of n_heads ({self.heads})")

    @property
    def core_width(self) -> int:
        """Multiply-adds per query-key pair: scores and weighted values over all heads."""
        return self.heads * (self.head_dim + (self.value_head_dim or self.head_dim))

    def matrices(self, hidden: int) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of each projection, by its role."""
        value_dim = self.value_head_dim or self.head_dim
        source = self.key_value_hidden or hidden
        result = {"q": (hidden, self.heads * self.head_dim), "o": (self.heads * value_dim, hidden)}
        if self.own_keys:
            result["k"] = (source, self.kv_heads * self.head_dim)
            result["v"] = (source, self.kv_heads * value_dim)
        if self.output_gate:
            result["output_gate"] = (hidden, self.heads * value_dim)
        return result

    def scan_flops(self) -> int:
        """None: attention has no recurrence."""
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek V2/V3): low-rank queries (``q_lora`` None: full) and keys/values."""

    heads: int
    q_lora: int | None = None
    kv_lora: int
    nope: int
    rope: int
    v: int
    mask: Mask = Mask()

    def __post_init__(self) -> None:
        require_positive(self, "heads", "kv_lora", "nope", "v")
        require_whole("rope", self.rope)
        if self.q_lora is not None:
            require_positive(self, "q_lora")

    @property
    def core_width(self) -> int:
        """Multiply-adds per query-key pair: H * ((nope + rope) + v)."""
        return self.heads * (self.nope + self.rope + self.v)

    def matrices(self, hidden: int) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of each projection: h*r_q + r_q*H(n+r) + h(r_kv+r) + r_kv*H(n+v) + H*v*h."""
        queries = self.heads * (self.nope + self.rope)
        result = {
            "kv_down": (hidden, self.kv_lora + self.rope),
            "kv_up": (self.kv_lora, self.heads * (self.nope + self.v)),
            "o": (self.heads * self.v, hidden),
        }
        if self.q_lora is None:
            return result | {"q": (hidden, queries)}
        return result | {"q_down": (hidden, self.q_lora), "q_up": (self.q_lora, queries)}

    def scan_flops(self) -> int:
        """None: attention has no recurrence."""
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Mamba2:
    """Mamba-2 layer: ``inner`` = heads x head width; ``groups`` of B and C of width ``state``."""

    inner: int
    state: int
    groups: int
    heads: int

    core_width: ClassVar[int] = 0

    def __post_init__(self) -> None:
        require_positive(self, "inner", "state", "groups", "heads")

    def matrices(self, hidden: int) -> dict[str, tuple[int, int]]:
        """(inputs, outputs): in h(2*d_in + 2*groups*state + heads), out d_in*h."""
        wide = 2 * self.inner + 2 * self.groups * self.state + self.heads
        return {"in": (hidden, wide), "out": (self.inner, hidden)}

    def scan_flops(self) -> int:
        """Forward FLOPs of the scan per token: 2*d_in*state, so 6*d_in*state in training (NeMo's count).

        Megatron-LM counts 21*d_in*state in training; the difference is below 2 % of a hybrid model.
        """
        return 2 * self.inner * self.state


@dataclass(frozen=True, kw_only=True, slots=True)
class Mamba1:
    """Mamba (selective state space) layer: in, x, dt and out projections."""

    inner: int
    state: int
    time_step_rank: int

    core_width: ClassVar[int] = 0

    def __post_init__(self) -> None:
        require_positive(self, "inner", "state", "time_step_rank")

    def matrices(self, hidden: int) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of the four projections."""
        return {
            "in": (hidden, 2 * self.inner),
            "x": (self.inner, self.time_step_rank + 2 * self.state),
            "dt": (self.time_step_rank, self.inner),
            "out": (self.inner, hidden),
        }

    def scan_flops(self) -> int:
        """Forward FLOPs of the scan per token, counted as for Mamba-2: 2*d_in*state."""
        return 2 * self.inner * self.state


@dataclass(frozen=True, kw_only=True, slots=True)
class GatedDelta:
    """Gated delta network (Qwen3-Next's linear attention): query/key heads and value heads of their own widths."""

    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    convolution: int = 0

    core_width: ClassVar[int] = 0

    def __post_init__(self) -> None:
        require_positive(self, "key_heads", "value_heads", "key_head_dim", "value_head_dim")

    def matrices(self, hidden: int) -> dict[str, tuple[int, int]]:
        """(inputs, outputs): q, k, v, gate and the two scalars of each value head in; values out."""
        keys = self.key_heads * self.key_head_dim
        values = self.value_heads * self.value_head_dim
        return {"in": (hidden, 2 * keys + 2 * values + 2 * self.value_heads), "out": (values, hidden)}

    def scan_flops(self) -> int:
        """Forward FLOPs per token of the recurrence (four products a head, as Megatron-LM) and the convolution."""
        keys = self.key_heads * self.key_head_dim
        values = self.value_heads * self.value_head_dim
        recurrence = 4 * self.value_heads * self.key_head_dim * self.value_head_dim
        return 2 * (recurrence + self.convolution * (2 * keys + values))


@dataclass(frozen=True, kw_only=True, slots=True)
class DenseMlp:
    """A feed-forward network of width ``ffn``: three matrices when gated, else two."""

    ffn: int
    gated: bool

    def __post_init__(self) -> None:
        require_positive(self, "ffn")

    def matrices(self, hidden: int) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of each matrix, by its role."""
        result = {"up": (hidden, self.ffn), "down": (self.ffn, hidden)}
        return result | {"gate": (hidden, self.ffn)} if self.gated else result

    def router_weights(self, hidden: int) -> int:  # noqa: ARG002 - same call as MoeMlp
        """None: nothing is routed."""
        return 0

    def stored_weights(self, hidden: int) -> int:
        """Weights held: those a token passes."""
        return sum(rows * columns for rows, columns in self.matrices(hidden).values())


@dataclass(frozen=True, kw_only=True, slots=True)
class MoeMlp:
    """A mixture of experts: a token passes ``top_k`` of ``n_experts`` of width ``expert_ffn`` and the shared ones.

    ``latent``: experts work in this width instead of the model's, between two shared projections.
    """

    n_experts: int
    top_k: int
    expert_ffn: int
    shared_expert_ffn: int
    gated: bool
    latent: int | None = None

    def __post_init__(self) -> None:
        require_positive(self, "n_experts", "top_k", "expert_ffn")
        require_whole("shared_expert_ffn", self.shared_expert_ffn)
        if self.top_k > self.n_experts:
            raise ShapeError("top_k", self.top_k, f"at most n_experts ({self.n_experts})")

    def matrices(self, hidden: int) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of what one token passes; the chosen experts stand side by side."""
        width, chosen = self.latent or hidden, self.top_k * self.expert_ffn
        result = {"expert_up": (width, chosen), "expert_down": (chosen, width)}
        if self.gated:
            result["expert_gate"] = (width, chosen)
        if self.latent is not None:
            result |= {"latent_down": (hidden, self.latent), "latent_up": (self.latent, hidden)}
        if self.shared_expert_ffn:
            shared = DenseMlp(ffn=self.shared_expert_ffn, gated=self.gated).matrices(hidden)
            result |= {f"shared_{role}": size for role, size in shared.items()}
        return result

    def router_weights(self, hidden: int) -> int:
        """h*E: below 0.3 % of a model; some tools count it, the default does not."""
        return hidden * self.n_experts

    def stored_weights(self, hidden: int) -> int:
        """Weights held: all experts and the router."""
        one = self.expert_ffn * (self.latent or hidden) * (3 if self.gated else 2)
        passed = sum(rows * columns for rows, columns in self.matrices(hidden).values())
        return passed + one * (self.n_experts - self.top_k) + self.router_weights(hidden)


Mixer: TypeAlias = Attention | LatentAttention | Mamba2 | Mamba1 | GatedDelta
FeedForward: TypeAlias = DenseMlp | MoeMlp


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """``count`` equal layers: a mixer, a feed-forward network, or both; decoders of pairs also look at the encoder."""

    count: int
    mixer: Mixer | None = None
    mlp: FeedForward | None = None
    cross: Attention | None = None

    def __post_init__(self) -> None:
        require_whole("count", self.count, maximum=MOST_LAYERS)
        if self.mixer is None and self.mlp is None:
            raise ShapeError("blocks", self, "a mixer, a feed-forward network, or both")

    def matrices(self, hidden: int) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of every matrix that one token passes in one layer of the block."""
        result: dict[str, tuple[int, int]] = {}
        for prefix, part in (("", self.mixer), ("", self.mlp), ("cross_", self.cross)):
            if part is not None:
                result |= {prefix + role: size for role, size in part.matrices(hidden).items()}
        return result

    def passed_weights(self, hidden: int) -> int:
        """Matmul weights that one token passes in one layer, routers left out."""
        return sum(rows * columns for rows, columns in self.matrices(hidden).values())

    def stored_weights(self, hidden: int) -> int:
        """Matmul weights that one layer holds, idle experts and routers included."""
        mixers = (
            Block(count=1, mixer=self.mixer, cross=self.cross).passed_weights(hidden) if self.mixer else 0
        )
        return mixers + (self.mlp.stored_weights(hidden) if self.mlp else 0)


def field_names(kind: type) -> tuple[str, ...]:
    """Names of the fields of a part that a description may set."""
    return tuple(field.name for field in fields(kind))
