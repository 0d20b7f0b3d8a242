"""Where an MFU stands: the practical ceiling, and what published runs of the same class reached on the same GPU."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from flopwatch import parameters
from flopwatch.accelerator import Accelerator
from flopwatch.mfu import PRACTICAL_CEILING
from flopwatch.published_ranges import PUBLISHED, PublishedRange
from flopwatch.shape import ModelShape

DENSE_CLASSES = ((3e9, "dense_below_3b"), (20e9, "dense_3b_to_20b"), (100e9, "dense_20b_to_100b"))
CLASS_TEXTS = {
    "dense_below_3b": "dense models below 3 billion parameters",
    "dense_3b_to_20b": "dense models of 3 to 20 billion parameters",
    "dense_20b_to_100b": "dense models of 20 to 100 billion parameters",
    "dense_above_100b": "dense models above 100 billion parameters",
    "mixture": "mixtures of experts",
    "hybrid": "state-space hybrids",
}
Place: TypeAlias = Literal["above", "upper", "lower", "below"]
PLACE_TEXTS: dict[Place, str] = {
    "above": "above all of them",
    "below": "below all of them",
    "upper": "in the upper half of that range",
    "lower": "in the lower half of that range",
}
NVIDIA_SMI = (
    "GPU-Util of nvidia-smi says only that some kernel was resident: it reads 100 % for a single small kernel, "
    "for waiting in a collective and for copies, so it says nothing of MFU"
)


def model_class(shape: ModelShape) -> str:
    """The class that published runs are compared in: one of ``CLASS_TEXTS``."""
    if shape.is_moe:
        return "mixture"
    if shape.attention_layers < shape.layers and any(
        b.mixer and not b.mixer.core_width for b in shape.blocks
    ):
        return "hybrid"
    total = parameters.count(shape).total
    return next((name for limit, name in DENSE_CLASSES if total < limit), "dense_above_100b")


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """An MFU against what is reachable and what was published."""

    model_class: str
    published: PublishedRange | None
    ceiling: tuple[float, float] = PRACTICAL_CEILING

    def sentence(self, ratio: float, product: str, dtype: str) -> str:
        """The standing of ``ratio`` in words that need no background."""
        low, high = self.ceiling
        text = f"Even the best single matrix multiplication reaches only {low:.0%} to {high:.0%} of a GPU's dense peak."
        if self.published is None:
            return f"{text} No published runs of {CLASS_TEXTS[self.model_class]} on {product} in {dtype} are known."
        where = PLACE_TEXTS[place(ratio, self.published)]
        return (
            f"{text} Published runs of {CLASS_TEXTS[self.model_class]} on {product} in {dtype} reached "
            f"{self.published.low:.0%} to {self.published.high:.0%} ({self.published.rows} runs); this one is {where}."
        )


def place(ratio: float, published: PublishedRange) -> Place:
    """Where the ratio is in the range."""
    if ratio > published.high:
        return "above"
    if ratio < published.low:
        return "below"
    return "upper" if ratio >= (published.low + published.high) / 2 else "lower"


def standing(shape: ModelShape, accelerator: Accelerator, dtype: str) -> Standing:
    """Where runs of the shape stand on the accelerator in that number format; fp16 counts as bf16."""
    kind = model_class(shape)
    number_format = "bf16" if dtype == "fp16" else dtype
    product = "A100 SXM 80GB" if accelerator.name.startswith(("A100", "A800")) else accelerator.name
    return Standing(model_class=kind, published=PUBLISHED.get((kind, product, number_format)))
