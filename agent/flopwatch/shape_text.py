"""What benchmark tables say of a model in words: which layers see a window, which are state space."""

import re
from dataclasses import dataclass

from flopwatch.blocks import Mask, ShapeError

_WINDOW = re.compile(r"(?:sliding[- ]window|window|sliding|local)(?: attention)?(?: (?:of|with))? ?(\d+)")
_RATIO = re.compile(r"(\d+) (?:sliding|local|window)\w*.*?(?:to|:|per|and|,) ?(\d+) (?:full|global)")
_EVERY = re.compile(r"every (\d+)(?:st|nd|rd|th) (?:layer )?(?:is )?(?:full|global)")
ATTN_FORMS = (
    "full, causal, bidirectional, 'sliding window N', 'alternating full and sliding window N', "
    "'K sliding window N to M full' or 'every Kth full, sliding window N'"
)


def masks_of(text: object, layers: int) -> list[Mask]:
    """The mask of each layer from ``attn``: see ``ATTN_FORMS``; None is causal everywhere.

    Raises:
        ShapeError: the text is not one of the forms.
    """
    if text is None:
        return [Mask()] * layers
    if not isinstance(text, str):
        raise ShapeError("attn", text, ATTN_FORMS)
    words = " ".join(text.lower().replace("_", " ").split())
    if words in ("full", "causal", "full causal", "global"):
        return [Mask()] * layers
    if words == "bidirectional":
        return [Mask(causal=False)] * layers
    window = _WINDOW.search(words)
    if window is None:
        raise ShapeError("attn", text, ATTN_FORMS)
    pattern = _pattern(words, window.group(0), text)
    local = Mask(window=int(window.group(1)))
    return [local if pattern[index % len(pattern)] else Mask() for index in range(layers)]


def _pattern(words: str, window: str, text: str) -> list[bool]:
    """Whether each layer of one period has the window."""
    every, ratio = _EVERY.search(words), _RATIO.search(words)
    if every:
        return [True] * (int(every.group(1)) - 1) + [False]
    if ratio:
        return [True] * int(ratio.group(1)) + [False] * int(ratio.group(2))
    rest = words.replace(window, "window")
    if rest in ("window", "causal window", "all window"):
        return [True]
    both = re.fullmatch(
        r"alternating (?:(full|global|causal) (?:and|/) window|window (?:and|/) (?:full|global|causal))", rest
    )
    if both is None:
        raise ShapeError("attn", text, ATTN_FORMS)
    return [False, True] if both.group(1) else [True, False]


@dataclass(frozen=True, kw_only=True, slots=True)
class Hybrid:
    """Layers of a hybrid model by kind, and the sizes of its Mamba-2 layers."""

    mamba: int = 0
    attention: int = 0
    mlp: int = 0
    moe: int = 0
    state: int = 0
    groups: int = 1
    head_dim: int = 64
    inner: int = 0
    """0: twice the hidden width."""

    @property
    def layers(self) -> int:
        """Layers of all kinds."""
        return self.mamba + self.attention + self.mlp + self.moe


_KINDS = {
    "mamba": "mamba", "mamba-2": "mamba", "mamba2": "mamba", "ssm": "mamba", "attention": "attention",
    "self-attention": "attention", "mlp": "mlp", "ffn": "mlp", "moe": "moe",
}  # fmt: skip
_SIZES = {
    r"state(?: size| dim)? (\d+)": "state", r"(\d+) groups?": "groups", r"head dim (\d+)": "head_dim",
    r"(?:inner|d_inner|inner width) (\d+)": "inner",
}  # fmt: skip
EXTRA_FORM = "'hybrid: A Mamba-2, B attention, C MLP layers; state S, G groups, head dim D'"


def hybrid_of(text: object) -> Hybrid:
    """The layers that ``extra`` lists, as in ``EXTRA_FORM``.

    Raises:
        ShapeError: a word of it is not understood.
    """
    if not isinstance(text, str) or not text.lower().startswith("hybrid:"):
        raise ShapeError("extra", text, EXTRA_FORM)
    values: dict[str, int] = {}
    for phrase in re.split(r"[;,]", text.lower().removeprefix("hybrid:")):
        name, number = _phrase(phrase.strip(), text)
        values[name] = values.get(name, 0) + number
    hybrid = Hybrid(**values)
    if hybrid.mamba and not hybrid.state:
        raise ShapeError("extra", text, EXTRA_FORM)
    return hybrid


def _phrase(phrase: str, text: str) -> tuple[str, int]:
    """One phrase as the field of ``Hybrid`` and its number."""
    for pattern, name in _SIZES.items():
        match = re.fullmatch(pattern, phrase)
        if match:
            return name, int(match.group(1))
    layers = re.fullmatch(r"(?:and )?(\d+) ([a-z0-9-]+)(?: layers?)?", phrase)
    if layers is None or layers.group(2) not in _KINDS:
        raise ShapeError("extra", text, EXTRA_FORM)
    return _KINDS[layers.group(2)], int(layers.group(1))
