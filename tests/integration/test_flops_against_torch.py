"""Our counts against torch's own FLOP counter, on small models without data (the meta device).

Needs torch, which the product does not; run it in an environment of its own:
``python -m pytest tests/integration/test_flops_against_torch.py``. torch counts what runs: attention in full whatever
its mask, routers, no embedding look-up. Those differences are accounted for to the FLOP.
"""

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from torch import nn  # noqa: E402 - torch may be missing
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from flopwatch.flops import ModelShape, flops_per_token  # noqa: E402

BATCH, SEQ_LEN, HIDDEN, VOCAB, LAYERS = 2, 32, 64, 128, 3
TOKENS = BATCH * SEQ_LEN
FLAT = {
    "n_layers": LAYERS, "hidden": HIDDEN, "ffn_hidden": 160, "n_heads": 4, "n_kv_heads": 2, "head_dim": 24,
    "vocab": VOCAB, "gated_mlp": True, "tied_embeddings": False,
}  # fmt: skip


def matrix(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


class Lora(nn.Module):
    """A frozen matrix with a low-rank adapter."""

    def __init__(self, inputs, outputs, rank):
        super().__init__()
        self.frozen = matrix(inputs, outputs).requires_grad_(False)
        self.down, self.up = matrix(inputs, rank), matrix(rank, outputs)

    def forward(self, x):
        return self.frozen(x) + self.up(self.down(x))


def attend(q, k, v):
    """Scores and weighted values by plain matmuls: heads before positions."""
    repeats = q.shape[1] // k.shape[1]
    k, v = (part.repeat_interleave(repeats, dim=1) for part in (k, v))
    return torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v


def split(x, heads):
    return x.view(BATCH, SEQ_LEN, heads, -1).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).reshape(BATCH, SEQ_LEN, -1)


class Attention(nn.Module):
    def __init__(self, make=matrix):
        super().__init__()
        self.q, self.k, self.v = make(HIDDEN, 4 * 24), matrix(HIDDEN, 2 * 24), make(HIDDEN, 2 * 24)
        self.o = matrix(4 * 24, HIDDEN)

    def forward(self, x):
        return self.o(merge(attend(split(self.q(x), 4), split(self.k(x), 2), split(self.v(x), 2))))


class LatentAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_down, self.q_up = matrix(HIDDEN, 24), matrix(24, 4 * 12)
        self.kv_down, self.kv_up = matrix(HIDDEN, 16 + 4), matrix(16, 4 * (8 + 12))
        self.o = matrix(4 * 12, HIDDEN)

    def forward(self, x):
        low, rotary = self.kv_down(x).split([16, 4], dim=-1)
        keys, values = split(self.kv_up(low), 4).split([8, 12], dim=-1)
        keys = torch.cat([keys, split(rotary, 1).expand(-1, 4, -1, -1)], dim=-1)
        return self.o(merge(attend(split(self.q_up(self.q_down(x)), 4), keys, values)))


class Mlp(nn.Module):
    def __init__(self, gated=True, width=160):
        super().__init__()
        self.up, self.down = matrix(HIDDEN, width), matrix(width, HIDDEN)
        self.gate = matrix(HIDDEN, width) if gated else None

    def forward(self, x):
        up = self.up(x)
        return self.down(up * torch.sigmoid(self.gate(x)) if self.gate is not None else torch.relu(up))


class Experts(nn.Module):
    """Each token through its chosen experts' own matrices, and through a shared one."""

    def __init__(self):
        super().__init__()
        self.router, self.shared = matrix(HIDDEN, 8), Mlp(width=40)
        self.up, self.gate = (nn.Parameter(torch.empty(8, HIDDEN, 48)) for _ in range(2))
        self.down = nn.Parameter(torch.empty(8, 48, HIDDEN))

    def forward(self, x):
        weight, chosen = self.router(x).reshape(TOKENS, 8).topk(2, dim=-1)
        chosen = chosen.reshape(-1)
        rows = x.reshape(TOKENS, 1, HIDDEN).repeat_interleave(2, dim=0)
        inner = (rows @ self.up[chosen]) * torch.sigmoid(rows @ self.gate[chosen])
        out = (inner @ self.down[chosen]).view(TOKENS, 2, HIDDEN) * weight.unsqueeze(-1)
        return out.sum(dim=1).view_as(x) + self.shared(x)


class Decoder(nn.Module):
    def __init__(self, mixers, mlps):
        super().__init__()
        self.embedding, self.head = nn.Embedding(VOCAB, HIDDEN), matrix(HIDDEN, VOCAB)
        self.mixers, self.mlps = nn.ModuleList(mixers), nn.ModuleList(mlps)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for mixer, mlp in zip(self.mixers, self.mlps, strict=True):
            x = x + mixer(x)
            x = x + mlp(x)
        return self.head(x)


def counted_by_torch(model):
    """FLOPs a token, forward and backward."""
    model = model.to("meta")
    tokens = torch.zeros(BATCH, SEQ_LEN, dtype=torch.long, device="meta")
    with FlopCounterMode(display=False) as counter:
        model(tokens).sum().backward()
    return counter.get_total_flops() / TOKENS


def shape(**changes):
    return ModelShape.from_dict({**FLAT, **changes})


@pytest.mark.parametrize("gated", [True, False])
def test_a_dense_decoder_with_grouped_queries(gated):
    model = Decoder([Attention() for _ in range(LAYERS)], [Mlp(gated) for _ in range(LAYERS)])

    assert counted_by_torch(model) == flops_per_token(shape(gated_mlp=gated), SEQ_LEN, "full")


def test_causal_halving_is_the_whole_difference_to_the_default():
    model = Decoder([Attention() for _ in range(LAYERS)], [Mlp() for _ in range(LAYERS)])
    half_the_square = 6 * LAYERS * 4 * 24 * SEQ_LEN

    assert counted_by_torch(model) - flops_per_token(shape(), SEQ_LEN) == half_the_square


def test_latent_attention():
    mla = {"q_lora": 24, "kv_lora": 16, "nope": 8, "rope": 4, "v": 12}
    model = Decoder([LatentAttention() for _ in range(LAYERS)], [Mlp() for _ in range(LAYERS)])

    assert counted_by_torch(model) == flops_per_token(shape(mla=mla), SEQ_LEN, "full")


def test_a_mixture_with_shared_experts_and_its_router():
    moe = {"n_experts": 8, "top_k": 2, "expert_ffn": 48, "shared_expert_ffn": 40, "first_dense_layers": 1}
    mlps = [Mlp(), *(Experts() for _ in range(LAYERS - 1))]
    model = Decoder([Attention() for _ in range(LAYERS)], mlps)

    assert counted_by_torch(model) == flops_per_token(shape(moe=moe), SEQ_LEN, "maxtext_full")


def test_lora_down_to_the_gradients_that_the_lowest_layer_does_not_need():
    rank = 4
    mixers = [Attention(lambda inputs, outputs: Lora(inputs, outputs, rank)) for _ in range(LAYERS)]
    model = Decoder(mixers, [Mlp() for _ in range(LAYERS)])
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(".down." in name or ".up." in name if name.startswith("mixers.") else False)
    queries, keys = HIDDEN * 4 * 24, HIDDEN * 2 * 24
    not_needed = 2 * (queries + 2 * keys) + 2 * 2 * HIDDEN * rank + 2 * 4 * 24 * SEQ_LEN

    ours = flops_per_token(shape().with_lora(rank, frozenset({"q", "v"})), SEQ_LEN, "full")
    assert counted_by_torch(model) == ours - not_needed
