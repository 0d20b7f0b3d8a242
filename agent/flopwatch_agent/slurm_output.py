"""Where Slurm puts a job's output: the file name patterns of ``sbatch`` and ``srun`` with their symbols filled in.

Pure. Needed on the nodes of a job that do not run its batch script: there a task's standard output is a pipe to
``slurmstepd``, and the file is opened by ``srun`` on another node.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

SYMBOL = re.compile(r"%(\d*)([%AabJjNnstux])")
NUMBERS = "AabJjnst"
"""Symbols whose number a width pads with zeros."""
MAX_WIDTH = 10
SINGLE = "slurm-%j.out"
ARRAY = "slurm-%A_%a.out"
WORDS = frozenset(("all", "none", "eio", "label"))
"""What ``srun`` takes in the place of a file name."""
HOST = re.compile(r"([^\[,]+)(?:\[(\d+))?")
OF_ONE_JOB = re.compile(r"%\d*[AJj]")
Environment = Callable[[str], str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class SlurmFile:
    """One place where the output may be."""

    path: str
    of_one_job: bool
    """Whether the name holds the job's id, so that nothing in the file is another job's."""


def slurm_files(variable: Environment) -> tuple[SlurmFile, ...]:
    """Where a task's output may be, the surest first; none without the job's id.

    ``variable`` gives a variable of the task's environment, None where it is not set.
    """
    if variable("SLURM_JOB_ID") is None:
        return ()
    folder, batch = variable("SLURM_SUBMIT_DIR"), batch_symbols(variable)
    patterns = (variable("SLURM_JOB_STDOUT"), variable("SBATCH_OUTPUT"), default(variable))
    of_batch = [placed(pattern, batch, folder) for pattern in patterns]
    found = (placed(variable("SLURM_STDOUTMODE"), step_symbols(variable), folder), *of_batch)
    return tuple(dict.fromkeys(item for item in found if item is not None))


def default(variable: Environment) -> str:
    """The name that ``sbatch`` chooses by itself."""
    return SINGLE if variable("SLURM_ARRAY_JOB_ID") is None else ARRAY


def placed(pattern: str | None, symbols: Mapping[str, str | None], folder: str | None) -> SlurmFile | None:
    """The file of a pattern; None where it is no file name, or a symbol or the folder is not known."""
    if not pattern or pattern in WORDS or pattern.isdigit():
        return None
    name = expanded(pattern, symbols)
    if name is None or (not name.startswith("/") and folder is None):
        return None
    path = name if name.startswith("/") else f"{folder}/{name}"
    return SlurmFile(path=path, of_one_job=OF_ONE_JOB.search(pattern) is not None)


def expanded(pattern: str, symbols: Mapping[str, str | None]) -> str | None:
    """A pattern with its symbols filled in; None when one of them is not known.

    A backslash in the pattern switches all symbols off. A width pads numbers with zeros, up to ten places.
    """
    if "\\" in pattern:
        return pattern.replace("\\", "")
    unknown: list[str] = []

    def value(match: re.Match[str]) -> str:
        width, symbol = match[1], match[2]
        if symbol == "%":
            return "%"
        found = symbols.get(symbol)
        if found is None:
            unknown.append(symbol)
            return ""
        padded = symbol in NUMBERS and width and found.isdigit()
        return found.zfill(min(int(width), MAX_WIDTH)) if padded else found

    text = SYMBOL.sub(value, pattern)
    return None if unknown else text


def batch_symbols(variable: Environment) -> dict[str, str | None]:
    """What the symbols mean in ``sbatch --output``: the batch script is task 0 on the job's first node."""
    job = variable("SLURM_JOB_ID")
    first = first_host(variable("SLURM_JOB_NODELIST") or variable("SLURM_NODELIST") or "")
    return {**job_symbols(variable), "J": job, "N": first, "n": "0", "s": "batch", "t": "0"}


def step_symbols(variable: Environment) -> dict[str, str | None]:
    """What the symbols mean in ``srun --output``, for this task."""
    job, step = variable("SLURM_JOB_ID"), variable("SLURM_STEP_ID")
    host = variable("SLURMD_NODENAME")
    return {
        **job_symbols(variable),
        "J": f"{job}.{step}" if job and step else None,
        "N": None if host is None else host.partition(".")[0],
        "n": variable("SLURM_NODEID"),
        "s": step,
        "t": variable("SLURM_PROCID"),
    }


def job_symbols(variable: Environment) -> dict[str, str | None]:
    """What the symbols of the whole job mean."""
    job, index = variable("SLURM_JOB_ID"), variable("SLURM_ARRAY_TASK_ID")
    return {
        "A": variable("SLURM_ARRAY_JOB_ID") or job,
        "a": index,
        "b": str(int(index) % 10) if index is not None and index.isdigit() else None,
        "j": job,
        "u": variable("SLURM_JOB_USER"),
        "x": variable("SLURM_JOB_NAME"),
    }


def first_host(hosts: str) -> str | None:
    """The first of a list of nodes such as ``gpu[003-016,020]``, short; None when there is none."""
    match = HOST.match(hosts)
    return None if match is None else f"{match[1]}{match[2] or ''}".partition(".")[0]
