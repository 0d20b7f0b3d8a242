"""What following costs: CPU of many quiet files, and memory and time whatever a file contains."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flopwatch_agent.followers import Followers
from flopwatch_agent.log_file import LogFile
from flopwatch_agent.log_follow import Follower
from flopwatch_agent.trainers.reader import LogReader

ROW = "iter {}: loss 3.1234, time 250.00ms, mfu 40.00%\n"
FILES = 64
TICK = os.sysconf("SC_CLK_TCK")


def test_the_cpu_of_following_64_quiet_files(tmp_path: Path) -> None:
    """An hour of looks at one a second, so that a clock of 10 ms can measure it."""
    followers, now = Followers(), time.time()
    for number in range(FILES):
        path = tmp_path / f"{number}.log"
        path.write_text("".join(ROW.format(n) for n in range(20)))
        followers.add(
            Follower(
                file=LogFile(path, str(path)),
                job=str(number),
                reader=LogReader(),
                run_start_seconds=now - 1.0,
            )
        )
    for second in range(60):
        for _ in followers.poll(now + second):
            pass

    before = time.process_time()
    for second in range(60, 3660):
        for _ in followers.poll(now + second):
            pass
    a_minute = (time.process_time() - before) / 60

    print(
        f"\n{FILES} quiet files: {a_minute * 1000:.1f} ms of CPU a minute; the kernel counts in {1000 / TICK:.0f} ms"
    )
    assert a_minute < 1 / TICK


READ_ALL = """
import sys, time
from pathlib import Path
from flopwatch_agent.followers import Followers
from flopwatch_agent.log_file import LogFile
from flopwatch_agent.log_follow import Follower
from flopwatch_agent.trainers.reader import LogReader

def peak():
    return next(int(row.split()[1]) for row in open("/proc/self/status") if row.startswith("VmHWM")) / 1024

before, now, steps, longest = peak(), time.time(), [], 0.0
one = Follower(file=LogFile(Path(sys.argv[1]), ""), job="", reader=LogReader(), run_start_seconds=now - 9)
followers = Followers()
followers.add(one)
while one.file.offset < one.file.status().st_size:
    began = time.process_time()
    steps += [row.step for item in followers.poll(now) for row in item.output.steps]
    longest, now = max(longest, time.process_time() - began), now + 1
steps += [row.step for row in one.poll(now + 10, 1)[0].steps]
print(peak() - before, longest, len(steps), *steps[-5:])
"""


def line(block: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: iter([block * ((200 << 20) // len(block)), b"\n"])


CONTENT: dict[str, Callable[[], Iterator[bytes]]] = {
    "one line of 200 MB": line(b"step loss time iter "),
    "one line of 200 MB of open braces": line(b"{'loss': [1.0, {'step': "),
    "200 MB in a line that the container runtime cut": lambda: (
        b"2026-11-30T10:10:10.000000000Z stdout P " + b"x" * 16_000 + b"\n" for _ in range(12_500)
    ),
    "100 MB of binary": lambda: (bytes(range(256)) * 4096 for _ in range(100)),
    "ten million lines of one letter": lambda: (b"a\n" * 100_000 for _ in range(100)),
}


@pytest.mark.parametrize("name", CONTENT)
def test_memory_and_the_time_of_a_look_are_bounded_whatever_a_log_contains(name: str) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write("".join(ROW.format(n) for n in range(5)).encode())
        for part in CONTENT[name]():
            file.write(part)
        file.write("".join(ROW.format(n) for n in range(5, 10)).encode())
        file.flush()
        found = subprocess.run(
            [sys.executable, "-c", READ_ALL, file.name], capture_output=True, text=True, check=True
        )
    grown, longest, count, *last = found.stdout.split()

    print(f"\n{name}: {float(grown):.1f} MiB more, longest look {float(longest) * 1000:.0f} ms of CPU")
    assert int(count) == 10
    assert last == ["5", "6", "7", "8", "9"]
    assert float(grown) < 32.0
    assert float(longest) < 1.0
