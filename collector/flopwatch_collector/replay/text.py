"""A replay's answer for people at a terminal. Pure."""

from collections.abc import Iterable
from typing import Any

Answer = dict[str, Any]


def text_of(answer: Answer) -> str:
    """The answer as a page of text: unknown is a dash."""
    ledger = answer["ledger"]
    parts = [
        _head(answer),
        "Ledger",
        _table(
            ("bucket", "GPU-seconds", "GPU-hours", "%", "money"),
            [
                (name, f"{amount:,.3f}", f"{ledger['gpu_hours'][name]:,.3f}", _percent(ledger["ratio"][name]),
                 _money(ledger, name))
                for name, amount in ledger["gpu_seconds"].items()
            ],
        ),
        f"  sum {ledger['capacity_gpu_seconds']:,.3f} GPU-seconds, {ledger['capacity_gpu_hours']:,.3f} GPU-hours",
        "",
        "Metrics",
        _table(("metric", "value"), [(name, _figure(value)) for name, value in answer["metrics"].items()]),
        "",
        "Jobs",
        _jobs(answer["jobs"]),
        *_goodput(answer["goodput"]),
        *_findings(answer["findings"]),
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _head(answer: Answer) -> str:
    marked = "SIMULATED data. " if answer["simulated"] else ""
    taken = answer["input"]
    span = f"{answer['start']} to {answer['end']} ({answer['time_zone']})"
    counts = (("batches taken", "batches"), ("came twice", "duplicates"), ("lines set aside", "set_aside"))
    lines = [
        f"{marked}{span}, {answer['gpus']} GPUs on {answer['nodes']} nodes",
        ", ".join(f"{taken[name]:,} {words}" for words, name in counts),
    ]
    lines += [f"  {each['source']}:{each['line']}: {each['reason']}" for each in taken["problems"]]
    return "\n".join([*lines, ""])


def _jobs(jobs: list[Answer]) -> str:
    header = (
        "job",
        "user",
        "GPUs",
        "GPU-hours",
        "MFU",
        "over lease",
        "ETTR",
        "interruptions",
        "largest bucket",
    )
    rows = []
    for job in jobs:
        goodput = job["goodput"]
        rows.append(
            (
                job["job_id"],
                job["user"] or "-",
                "-" if job["gpus"] is None else str(job["gpus"]),
                f"{job['leased_gpu_seconds'] / 3600:,.3f}",
                _percent(job["mfu"]),
                _percent(job["mfu_over_lease"]),
                _percent(job["ETTR"]),
                "-" if goodput is None else str(len(goodput["interruptions"])),
                _largest(job["gpu_seconds"]),
            )
        )
    return _table(header, rows) if rows else "  none"


def _largest(buckets: dict[str, float]) -> str:
    name = max(buckets, key=lambda each: buckets[each])
    return name if buckets[name] > 0 else "-"


def _goodput(goodput: Answer | None) -> list[str]:
    if goodput is None:
        return []
    saves = goodput["checkpointing"]
    rows = [
        ("ETTR", _percent(goodput["ettr_ratio"])),
        ("interruptions", str(len(goodput["interruptions"]))),
        ("MTBF", _duration(goodput["mtbf_seconds"])),
        ("MTTR", _duration(goodput["mttr_seconds"])),
        ("time to detect", _duration(goodput["detect_seconds"])),
        ("time to isolate", _duration(goodput["isolate_seconds"])),
        ("time to resume", _duration(goodput["resume_seconds"])),
        ("work lost an interruption, GPU-h", _hours(goodput["lost_per_interruption_gpu_seconds"])),
        ("checkpoint overhead", _percent(saves["overhead_ratio"])),
        ("checkpoint interval", _duration(saves["interval_seconds"])),
        ("best interval (Young/Daly)", _duration(saves["optimum_interval_seconds"])),
        *(
            (f"gain: {gain['name']}", f"{gain['ratio']:.2%}, {gain['gpu_seconds'] / 3600:,.2f} GPU-h")
            for gain in goodput["gains"]
        ),
    ]
    return ["", "Goodput of all runs", _table(("what", "value"), rows)]


def _findings(findings: list[Answer]) -> list[str]:
    if not findings:
        return []
    return ["", "Findings", *(f"  {each['job_id']}: {each['code']}: {each['text']}" for each in findings)]


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = []
    for row in table:
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.3%}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.6f}"


def _hours(gpu_seconds: float | None) -> str:
    return "-" if gpu_seconds is None else f"{gpu_seconds / 3600:,.3f}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:,.1f} s" if seconds < 600 else f"{seconds / 60:,.1f} min"


def _money(ledger: Answer, name: str) -> str:
    return "-" if ledger["money"] is None else f"{ledger['money'][name]:,.2f} {ledger['currency']}"
