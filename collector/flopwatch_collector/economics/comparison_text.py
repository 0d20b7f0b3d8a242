"""The answer of ``flopwatch compare`` for people."""

from collections.abc import Callable
from typing import Any

UNKNOWN = "unknown"


def render(document: dict[str, Any]) -> str:
    """A row a figure, a column a run, and what to write into the cost file."""
    jobs, currency = document["jobs"], document["currency"] or "money"
    lines = ["  " + " " * 34 + "".join(f"{_cut(job['name']):>22}" for job in jobs)]
    lines += [_row(label, [shown(job) for job in jobs]) for label, shown in _rows(currency)]
    losses = document["loss_at_equal_tokens"]
    if losses is not None:
        lines.append(
            _row(f"loss at {losses['tokens']:.4g} tokens", [f"{each:.4f}" for each in losses["losses"]])
        )
    if document["efficiency_ratio"] is not None:
        lines.append(
            f"\n  rho = {document['efficiency_ratio']:.6f}: MFU x goodput x peak of the first over the second"
        )
        lines += ["", "  for the cost file:", *_settings(*jobs)]
    if document["cheaper"] is not None:
        lines.append(f"\n  cheaper a token: {document['cheaper']}")
    return "\n".join(lines) + "\n"


def _rows(currency: str) -> list[tuple[str, Callable[[dict[str, Any]], str]]]:
    return [
        ("job", lambda job: _cut(job["job_id"])),
        ("GPU", lambda job: _cut(job["gpu_model"] or UNKNOWN)),
        ("GPUs", lambda job: _figure(job["gpus"], ",.0f")),
        ("GPU-hours held", lambda job: _figure(job["gpu_hours"], ",.1f")),
        ("tokens trained", lambda job: _figure(job["tokens"], ".4g")),
        ("step MFU", lambda job: _figure(job["step_mfu"], ".1%")),
        ("wall MFU", lambda job: _figure(job["wall_mfu"], ".1%")),
        ("goodput", lambda job: _figure(job["goodput"], ".1%")),
        ("step time, p50", lambda job: _figure(job["step_seconds"].get("p50"), ".3f")),
        ("step time, p90", lambda job: _figure(job["step_seconds"].get("p90"), ".3f")),
        ("step time, (p90 - p50) / p50", lambda job: _figure(job["step_time_spread"], ".1%")),
        ("waiting for data", lambda job: _figure(job["data_wait_ratio"], ".1%")),
        ("saving checkpoints", lambda job: _figure(job["checkpoint_ratio"], ".1%")),
        (f"{currency} a GPU-hour", lambda job: _figure(job["price_per_gpu_hour"], ".4f")),
        (f"{currency} a trillion tokens", lambda job: _figure(job["per_trillion_tokens"], ",.0f")),
        (f"{currency} a useful EFLOP", lambda job: _figure(job["per_useful_eflop"], ".4f")),
    ]


def _settings(own: dict[str, Any], cloud: dict[str, Any]) -> list[str]:
    lines = ["    [costs.efficiency]"]
    for side, job in (("own", own), ("cloud", cloud)):
        lines += [
            f"    {side}_mfu = {job['step_mfu']:.4f}",
            f"    {side}_goodput = {job['goodput']:.4f}",
            f"    {side}_peak_tflops = {job['peak_tflops']:g}",
        ]
    return [*lines, '    cloud_basis = "measured"']


def _row(label: str, texts: list[str]) -> str:
    return f"  {label:<34}" + "".join(f"{text:>22}" for text in texts)


def _figure(value: float | None, form: str) -> str:
    return UNKNOWN if value is None else format(value, form)


def _cut(text: str) -> str:
    return text if len(text) <= 20 else text[:19] + "…"
