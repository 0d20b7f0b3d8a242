"""The figures as a table for people, in Markdown."""

from collections.abc import Iterable
from typing import Any

from tests.bench.load.figures import PERIODIC


def text(results: dict[str, Any]) -> str:
    """All of them."""
    runs = results["runs"]
    parts = [
        _table(("", *runs), [(name, *(row(run) for run in runs.values())) for name, row in _ROWS.items()])
    ]
    threads = dict.fromkeys(name for run in runs.values() for name in _threads(run))
    if any(_exact(run) != "" for run in runs.values()):
        rows = [(name, *(f"{_threads(run).get(name, 0.0):.3f}" for run in runs.values())) for name in threads]
        parts.append(_table(("CPU ms a batch, by thread", *runs), rows))
    if found := results.get("decoding_microseconds"):
        parts.append(
            _table(("decoding a batch", "CPU µs"), [(name, f"{value:.1f}") for name, value in found.items()])
        )
    parts += [_flat(run["flatness"]) for run in runs.values() if "flatness" in run]
    return "\n".join(parts)


def _figure(name: str, form: str, factor: float = 1.0) -> Any:
    return lambda run: format(run["figures"][name] * factor, form)


def _bare(run: dict[str, Any]) -> float:
    """What taking and storing cost, as in a database that computes nothing from what it stores."""
    known = run["figures"]
    periodic = known["by_thread_milliseconds_a_batch"].get(PERIODIC, 0.0)
    ratio = 1.0 - periodic / known["cpu_milliseconds_a_batch"]
    return float(known["cpu_seconds_a_million_samples"] * ratio)


def _exact(run: dict[str, Any]) -> str:
    if "exactness" not in run:
        return ""
    known = run["exactness"]
    words = "exactly once" if known["exact"] else "NOT THE SAME"
    return f"{words}: {known['acknowledged']} ({known['late']} late, {known['repeats']} repeated)"


def _restart(run: dict[str, Any]) -> str:
    if "exactness" not in run:
        return ""
    stored = run["exactness"]["stored"]
    return f"{stored['open_seconds']:.2f} s, {stored['gpus_known']} GPUs in {stored['latest_seconds'] * 1e3:.1f} ms"


def _stored(run: dict[str, Any]) -> str:
    size = run.get("stored_bytes_a_sample")
    return "no hour closed" if size is None else f"{size:.2f}"


def _threads(run: dict[str, Any]) -> dict[str, float]:
    return dict(run["figures"]["by_thread_milliseconds_a_batch"]) if "exactness" in run else {}


_ROWS = {
    "fleet's time measured": _figure("fleet_seconds", ".0f"),
    "batches": _figure("batches", ".0f"),
    "share of a core at real time": _figure("core_share", ".1%"),
    "CPU ms a batch": _figure("cpu_milliseconds_a_batch", ".3f"),
    "CPU-s a million samples": _figure("cpu_seconds_a_million_samples", ".2f"),
    "the same without periodic work": lambda run: f"{_bare(run):.2f}",
    "answer p50 / p99 / longest, ms": lambda run: " / ".join(
        f"{run['figures'][f'{name}_milliseconds']:.0f}" for name in ("p50", "p99", "longest")
    ),
    "resident / peak, MB": lambda run: (
        f"{run['figures']['resident_bytes'] / 1e6:.0f} / {run['figures']['peak_resident_bytes'] / 1e6:.0f}"
    ),
    "bytes a sample on disk": _stored,
    "samples a batch": _figure("samples_a_batch", ".0f"),
    "JSON / sent, bytes a batch": lambda run: (
        f"{run['figures']['json_bytes_a_batch']:.0f} / {run['figures']['sent_bytes_a_batch']:.0f}"
    ),
    "acknowledged = stored": _exact,
    "opened again; newest samples": _restart,
    "generator: share of a core": _figure("generator_core_share", ".1%"),
    "generator behind at most, s": _figure("generator_behind_seconds", ".2f"),
}


def _flat(known: dict[str, Any]) -> str:
    rows = []
    for name, values in known["by_quarter"].items():
        factor, unit = (1e-6, " MB") if name.endswith("bytes") else (1, "")
        rows.append((name + unit, *(f"{value * factor:.0f}" for value in values)))
    table = _table(("medians of each quarter", "1st", "2nd", "3rd", "4th"), rows)
    slope = known["anonymous_bytes_an_hour"]
    return f"{table}\nanonymous memory from the third quarter to the fourth: {slope / 1e6:+.1f} MB an hour\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
