import pytest

from flopwatch.query import LEDGER_CLASSES
from flopwatch_dashboard.theme import PALETTES, Palette, style_sheet

TEXT_ON = [
    ("text", "card"), ("muted", "card"), ("muted", "bg"), ("text", "bg"), ("brand", "card"), ("critical", "card"),
    ("warning", "card"), ("info", "card"), ("good", "card"), ("belowtext", "card"), ("mfutext", "card"),
    ("tensortext", "card"), ("kerneltext", "card"), ("secondtext", "card"), ("text", "warningbg"),
    ("muted", "warningbg"), ("warning", "warningbg"), ("info", "infobg"), ("brand", "warningbg"), ("tiptext", "tip"),
    ("inbar", "productive"), ("text", "capacity"), ("muted", "track"),
]  # fmt: skip


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_accessibility_guidelines() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("palette", PALETTES.values(), ids=list(PALETTES))
@pytest.mark.parametrize(("front", "back"), TEXT_ON)
def test_text_stands_out_from_what_it_is_on(palette: Palette, front: str, back: str) -> None:
    assert contrast(palette[front], palette[back]) >= 4.5


def test_both_themes_have_the_same_tokens_and_a_colour_for_every_class() -> None:
    light, dark = PALETTES.values()

    assert set(light) == set(dark)
    assert set(LEDGER_CLASSES) <= set(light)


@pytest.mark.parametrize("palette", PALETTES.values(), ids=list(PALETTES))
def test_no_two_classes_share_a_colour(palette: Palette) -> None:
    assert len({palette[name] for name in LEDGER_CLASSES}) == len(LEDGER_CLASSES)


def test_the_style_sheet_carries_every_token_of_both_themes() -> None:
    sheet = style_sheet()

    assert "--allocated-idle:#e2a012;" in sheet
    assert "[data-theme=dark]{--bg:#0c1117;" in sheet
