"""Colour tokens of the two themes, from the Okabe-Ito palette: one table for figures and style sheet."""

from collections.abc import Mapping
from typing import Literal

Theme = Literal["light", "dark"]
Palette = Mapping[str, str]

LIGHT: Palette = {
    "bg": "#f3f5f8", "card": "#ffffff", "line": "#e1e6ec", "hover": "#f6f8fa", "track": "#e9edf2",
    "text": "#17202b", "muted": "#566273", "brand": "#0b6fb8",
    "grid": "#e6e9ee", "axis": "#c5ccd6", "tip": "#17202b", "tiptext": "#ffffff",
    "good": "#0b6fb8", "under": "#8fb4d3", "below": "#d98200", "belowtext": "#9a5b00", "gap": "rgba(217,130,0,.20)",
    "critical": "#b42318", "warning": "#9a5b00", "info": "#0a67ab",
    "criticalbg": "#fdecea", "warningbg": "#fff4e0", "infobg": "#e8f2fb", "goodbg": "#e8f2fb",
    "mfu": "#0b6fb8", "mfutext": "#0b6fb8", "fill": "rgba(11,111,184,.10)",
    "tensor": "#9a4f86", "tensortext": "#9a4f86", "kernel": "#8a94a3", "kerneltext": "#5f6b7a",
    "second": "#d98200", "secondtext": "#9a5b00",
    "capacity": "#d5dae2", "inbar": "#ffffff",
    "down": "#6b7482", "unallocated": "#b9a27a", "allocated_idle": "#e2a012", "stalled": "#9a4f86",
    "in_job_loss": "#63b3e4", "productive": "#0b6fb8", "unmeasured": "#4d9a86", "unknown": "#aab3bf",
    "live": "#1a9a6c", "shadow": "0 1px 2px rgba(16,24,40,.05)",
}  # fmt: skip

DARK: Palette = {
    "bg": "#0c1117", "card": "#151b23", "line": "#252e3a", "hover": "#1b232d", "track": "#252e3a",
    "text": "#e7ecf3", "muted": "#9aa7b8", "brand": "#4aa8e8",
    "grid": "#252e3a", "axis": "#3a4656", "tip": "#e7ecf3", "tiptext": "#10151b",
    "good": "#4aa8e8", "under": "#42698a", "below": "#f0a32f", "belowtext": "#f5b84c", "gap": "rgba(240,163,47,.20)",
    "critical": "#ff8a7a", "warning": "#f5b84c", "info": "#6cb8f0",
    "criticalbg": "#331713", "warningbg": "#30240e", "infobg": "#10263a", "goodbg": "#10263a",
    "mfu": "#4aa8e8", "mfutext": "#4aa8e8", "fill": "rgba(74,168,232,.13)",
    "tensor": "#d490c0", "tensortext": "#d490c0", "kernel": "#8793a5", "kerneltext": "#9aa7b8",
    "second": "#f0a32f", "secondtext": "#f5b84c",
    "capacity": "#39434f", "inbar": "#0d1117",
    "down": "#76818f", "unallocated": "#a8926a", "allocated_idle": "#f0b93a", "stalled": "#d490c0",
    "in_job_loss": "#8cccf2", "productive": "#3d9be0", "unmeasured": "#67b8a3", "unknown": "#566273",
    "live": "#1a9a6c", "shadow": "none",
}  # fmt: skip

PALETTES: Mapping[Theme, Palette] = {"light": LIGHT, "dark": DARK}


def style_sheet() -> str:
    """The tokens as CSS variables: ``:root`` is light, ``[data-theme=dark]`` overrides except on paper."""
    return f":root{{{_variables(LIGHT)}}}@media not print{{[data-theme=dark]{{{_variables(DARK)}}}}}"


def _variables(palette: Palette) -> str:
    return "".join(f"--{name.replace('_', '-')}:{value};" for name, value in palette.items())
