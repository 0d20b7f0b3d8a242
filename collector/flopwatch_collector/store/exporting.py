"""Exports: the answer to one question over a range of time, as one Parquet or CSV file, piece by piece."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import duckdb
import numpy as np

from flopwatch_collector.model import GPU_COLUMNS, GPU_METRICS, Columns, Gpu, JobRecord, Node
from flopwatch_collector.store import columns
from flopwatch_collector.store.database import Cursor, literal
from flopwatch_collector.store.layout import complete
from flopwatch_collector.store.port import ROLLUP_KINDS, Control, Progress, Store, Unavailable
from flopwatch_collector.store.schema import quoted

Question = Literal[
    "gpu_samples", "gpu_series", "job_series", "node_series", "node_samples", "job_host_samples", "port_samples",
    "steps", "phases", "events", "job5m", "job1h", "ledger5m", "ledger1d",
]  # fmt: skip
QUESTIONS: tuple[Question, ...] = get_args(Question)
Format = Literal["parquet", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)

PIECE_SECONDS: Mapping[str, float] = {
    "gpu_samples": 600.0, "gpu_series": 3600.0, "job_series": 3600.0, "node_series": 3600.0, "node_samples": 21_600.0,
    "job_host_samples": 21_600.0, "port_samples": 3600.0, "steps": 21_600.0, "events": 86_400.0, "phases": math.inf,
}  # fmt: skip
"""How much is asked for at once; rollups by the day, phases at once because a piece's border would double them."""
BUCKETED = frozenset({"gpu_series", "job_series", "node_series"})
"""Questions with a step."""
DAY_SECONDS = 86_400.0
TIMES = frozenset({"ts", "end"})
MEMORY_LIMIT = "256MB"


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """What is exported: a question, epoch seconds of [start, end), and where to."""

    question: Question
    start_seconds: float
    end_seconds: float
    output: Path
    format: Format = "parquet"
    step_seconds: float = 60.0
    """Of the ``BUCKETED`` questions."""

    def __post_init__(self) -> None:
        if self.question not in QUESTIONS:
            raise ValueError(f"question is {self.question!r}; allowed: {', '.join(QUESTIONS)}")
        if self.format not in FORMATS:
            raise ValueError(f"format is {self.format!r}; allowed: {', '.join(FORMATS)}")
        if not 0 <= self.start_seconds < self.end_seconds < 253_402_300_800.0:
            raise ValueError(
                f"the range is {self.start_seconds:g} to {self.end_seconds:g}; allowed: a start before its end"
            )
        if not 1 <= self.step_seconds <= DAY_SECONDS:
            raise ValueError(f"step_seconds is {self.step_seconds:g}; allowed: 1 to 86400")


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """The file that was written."""

    output: Path
    rows: int
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """What people call the numbers in the columns."""

    node: Mapping[int, str] = field(default_factory=dict)
    gpu: Mapping[int, str] = field(default_factory=dict)
    job: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, control: Control) -> "Names":
        """The names in a control state: a node's name, a GPU's UUID, a job's id."""
        return cls(
            node={node.number: node.name for node in control.load("node", Node).values()},
            gpu={gpu.number: gpu.uuid for gpu in control.load("gpu", Gpu).values()},
            job={job.number: job.job_id for job in control.load("job", JobRecord).values()},
        )


NAME_COLUMNS = {"node": "node_name", "gpu": "gpu_uuid", "job": "job_id"}


def export(store: Store, names: Names, wanted: Export, progress: Progress) -> Exported:
    """Write the file; it is there and whole afterwards, or not at all.

    Raises:
        FileExistsError: the file is there already.
        FileNotFoundError: its folder is not there.
        Unavailable: it cannot be written.
    """
    if wanted.output.exists():
        raise FileExistsError(f"{wanted.output} is there already; give another name")
    if not wanted.output.parent.is_dir():
        raise FileNotFoundError(f"{wanted.output.parent} is no folder")
    scratch = wanted.output.with_name(f".{wanted.output.name}.export")
    try:
        with contextlib.closing(duckdb.connect(str(scratch), config=_config(scratch))) as connection:
            for done, piece in _pieces(wanted, _asker(store, names, wanted)):
                progress(f"exporting {wanted.question}", done)
                _gather(connection, named(piece, names))
            progress(f"writing {wanted.output}", 1.0)
            rows = _write(connection, wanted)
    except (duckdb.Error, OSError) as problem:
        raise Unavailable(f"{wanted.output} cannot be written: {problem}") from problem
    finally:
        for left in scratch.parent.glob(f"{scratch.name}*"):
            left.unlink()
    return Exported(output=wanted.output, rows=rows, bytes=wanted.output.stat().st_size)


def _config(scratch: Path) -> dict[str, Any]:
    return {
        "memory_limit": MEMORY_LIMIT,
        "threads": 1,
        "temp_directory": str(scratch) + ".spill",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }


Ask = Callable[[float, float], Columns]


def _pieces(wanted: Export, ask: Ask) -> Iterator[tuple[float, Columns]]:
    """Answers for consecutive stretches, each with the share of the range before it."""
    length = PIECE_SECONDS.get(wanted.question, DAY_SECONDS)
    if wanted.question in BUCKETED:
        length = max(1, length // wanted.step_seconds) * wanted.step_seconds
    span = wanted.end_seconds - wanted.start_seconds
    start = wanted.start_seconds
    while start < wanted.end_seconds:
        # Pieces end at multiples of their length, so that no bucket is in two of them.
        end = wanted.end_seconds if math.isinf(length) else (start // length + 1) * length
        end = min(end, wanted.end_seconds)
        yield (start - wanted.start_seconds) / span, ask(start, end)
        start = end


def _asker(store: Store, names: Names, wanted: Export) -> Ask:
    """Asks the question about every node, GPU or job that is known."""
    step = wanted.step_seconds
    nodes, gpus = _known(store, "node", names.node), _known(store, "gpu", names.gpu)
    askers: dict[str, Ask] = {
        "gpu_samples": lambda start, end: store.gpu_samples(start, end, GPU_COLUMNS),
        "gpu_series": lambda start, end: store.gpu_series(start, end, step, GPU_METRICS, gpus),
        "job_series": lambda start, end: store.job_series(start, end, step),
        "node_series": lambda start, end: store.node_series(start, end, step, nodes),
        "node_samples": lambda start, end: store.host_samples("node", start, end, nodes),
        "job_host_samples": lambda start, end: store.host_samples("job", start, end, names.job),
        "port_samples": lambda start, end: store.port_samples(start, end, nodes),
        "steps": store.steps,
        "phases": store.phases,
        "events": store.events,
    }
    for kind in ROLLUP_KINDS:
        askers[kind] = lambda start, end, kind=kind: store.windows(kind, start, end)  # type: ignore[misc]
    return askers[wanted.question]


def _known(store: Store, column: str, named: Mapping[int, str]) -> list[int]:
    """Numbers with a name, and those of GPUs that have reported."""
    numbers = store.latest_gpus()[column]
    return sorted({*named, *numbers[~np.isnan(numbers)].astype(int).tolist()})


def named(table: Columns, names: Names) -> Columns:
    """The table with a column of names after each column of numbers; None where a number has none."""
    result: Columns = {}
    for column, values in table.items():
        result[column] = values
        if column in NAME_COLUMNS:
            known: Mapping[int, str] = getattr(names, column)
            texts = [None if np.isnan(number) else known.get(int(number)) for number in values]
            result[NAME_COLUMNS[column]] = np.array(texts, dtype=object)
    return result


def _gather(connection: Cursor, piece: Columns) -> None:
    """Add a piece to the scratch table; a column that it has and the table lacks is added to that."""
    if not piece:
        return
    table = {name: columns.times(values) if name in TIMES else values for name, values in piece.items()}
    kinds = {name: _kind(name, values) for name, values in piece.items()}
    there = {row[0] for row in connection.execute(_COLUMNS).fetchall()}
    if not there:
        definition = ", ".join(f"{quoted(name)} {kind}" for name, kind in kinds.items())
        connection.execute(f"CREATE TABLE answer ({definition})")
    else:
        for name in kinds.keys() - there:
            connection.execute(f"ALTER TABLE answer ADD COLUMN {quoted(name)} {kinds[name]}")
    connection.register("incoming", table)
    shown = ", ".join(f"{_stored(name, kind)} AS {quoted(name)}" for name, kind in kinds.items())
    connection.execute(f"INSERT INTO answer BY NAME SELECT {shown} FROM incoming")
    connection.unregister("incoming")


_COLUMNS = "SELECT column_name FROM duckdb_columns() WHERE table_name = 'answer'"


def _kind(name: str, values: columns.Array) -> str:
    if name in TIMES:
        return "TIMESTAMP"
    return "VARCHAR" if values.dtype.kind in "OU" else "DOUBLE"


def _stored(name: str, kind: str) -> str:
    if kind == "DOUBLE":
        return f"nullif({quoted(name)}::DOUBLE, 'NaN'::DOUBLE)"
    return f"{quoted(name)}::{kind}"


def _write(connection: Cursor, wanted: Export) -> int:
    """Copy the scratch table to the file; rows written."""
    if not connection.execute(_COLUMNS).fetchall():
        connection.execute("CREATE TABLE answer (ts TIMESTAMP)")
    options = "FORMAT parquet, COMPRESSION zstd" if wanted.format == "parquet" else "FORMAT csv, HEADER"
    with complete(wanted.output) as temporary:
        target = literal(temporary)
        (rows,) = connection.execute(f"COPY answer TO {target} ({options})").fetchall()[0]
    return int(rows)
