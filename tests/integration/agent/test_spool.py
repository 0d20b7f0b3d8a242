"""The spool on a real disk."""

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flopwatch_agent.log_follow import Position
from flopwatch_agent.positions import Positions
from flopwatch_agent.spool import Spool

MIB = 1 << 20


def body(batch) -> bytes:
    return gzip.decompress(batch.path.read_bytes())


def test_batches_leave_in_the_order_they_came_and_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MIB)
    for number in range(3):
        spool.write(spool.next_sequence, b"batch %d" % number)

    sent = []
    while (batch := spool.oldest()) is not None:
        sent.append((batch.sequence, body(batch)))
        spool.done(batch)

    assert sent == [(0, b"batch 0"), (1, b"batch 1"), (2, b"batch 2")]


def test_numbers_and_the_spools_name_go_on_after_a_restart_also_when_all_was_sent(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MIB)
    spool.write(0, b"a")
    spool.write(1, b"b")
    for _ in range(2):
        batch = spool.oldest()
        assert batch is not None
        spool.done(batch)

    again = Spool(tmp_path, MIB)

    assert again.next_sequence == 2
    assert again.spool_id == spool.spool_id
    assert again.oldest() is None


def test_a_new_folder_has_a_new_name(tmp_path: Path) -> None:
    assert Spool(tmp_path / "a", MIB).spool_id != Spool(tmp_path / "b", MIB).spool_id


def test_beyond_its_size_the_oldest_batches_go_and_are_counted_for_good(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 3000)
    for number in range(10):
        spool.write(number, os.urandom(1000))

    assert spool.waiting_bytes <= 3000
    assert spool.dropped == 10 - spool.waiting
    assert spool.oldest().sequence == spool.dropped
    assert Spool(tmp_path, 3000).dropped == spool.dropped


def test_a_refused_batch_is_set_aside_with_the_reason(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MIB)
    spool.write(0, b"bad")
    spool.write(1, b"good")

    batch = spool.oldest()
    spool.reject(batch, "422 steps.step is -1")

    assert spool.oldest().sequence == 1
    assert (tmp_path / "rejected" / f"{0:020d}.reason").read_text() == "422 steps.step is -1\n"
    assert gzip.decompress((tmp_path / "rejected" / f"{0:020d}.json.gz").read_bytes()) == b"bad"


def test_half_written_files_of_a_crash_are_thrown_away(tmp_path: Path) -> None:
    Spool(tmp_path, MIB).write(0, b"whole")
    (tmp_path / f"{1:020d}.json.tmp").write_bytes(b"torn")

    spool = Spool(tmp_path, MIB)

    assert spool.waiting == 1
    assert spool.next_sequence == 1
    assert not list(tmp_path.glob("*.tmp"))


WRITER = """
import sys
from pathlib import Path
from flopwatch_agent.spool import Spool
spool = Spool(Path(sys.argv[1]), 1 << 30)
while True:
    number = spool.next_sequence
    spool.write(number, b"%d:" % number + b"x" * 50_000)
    print(number, flush=True)
"""


def test_a_writer_that_is_killed_leaves_only_whole_batches_and_uses_no_number_twice(tmp_path: Path) -> None:
    highest = -1
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(15):
            confirmed = int(process.stdout.readline())
            assert confirmed == highest + 1 or highest == -1 or confirmed > highest
            highest = confirmed
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()

    spool = Spool(tmp_path, 1 << 30)
    numbers = []
    while (batch := spool.oldest()) is not None:
        assert body(batch) == b"%d:" % batch.sequence + b"x" * 50_000
        numbers.append(batch.sequence)
        spool.done(batch)
    assert numbers == list(range(len(numbers)))
    assert numbers[-1] >= highest


FULL = """
import resource, signal, sys
from pathlib import Path
from flopwatch_agent.spool import Spool
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
spool = Spool(Path(sys.argv[1]), 1 << 30)
spool.write(0, b"small")
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
import os
try:
    spool.write(1, os.urandom(100_000))
except OSError as error:
    print(type(error).__name__, spool.next_sequence, len(list(Path(sys.argv[1]).glob("*.tmp"))))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
spool.write(1, b"room again")
print(spool.waiting)
"""


def test_a_write_that_fails_leaves_nothing_behind_and_its_number_free(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True
    )

    assert answer.stdout.splitlines() == ["OSError 1 0", "2"]


def position(offset: int) -> Position:
    return Position(job="slurm:7", source_id="file:a", offset=offset, history_end=3)


def test_positions_count_only_once_their_batch_is_in_the_spool(tmp_path: Path) -> None:
    positions = Positions(tmp_path, -1)
    positions.prepare(0, {"8:1": position(10)})
    positions.commit(0)
    positions.prepare(1, {"8:1": position(20)})

    assert Positions(tmp_path, 0).get("8:1") == position(10)


def test_positions_whose_batch_was_written_before_the_crash_hold(tmp_path: Path) -> None:
    positions = Positions(tmp_path, -1)
    positions.prepare(0, {"8:1": position(10)})
    positions.commit(0)
    positions.prepare(1, {"8:1": position(20)})

    assert Positions(tmp_path, 1).get("8:1") == position(20)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"8:1": [1]}', '{"8:1": null}'])
def test_a_damaged_file_of_positions_is_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "log_positions.json").write_text(content)

    assert Positions(tmp_path, 0).get("8:1") is None


def test_positions_of_a_batch_that_could_not_be_written_are_written_again_with_the_next(
    tmp_path: Path,
) -> None:
    positions = Positions(tmp_path, -1)
    positions.prepare(0, {"8:1": position(10)})

    positions.prepare(0, {"8:1": position(10)})
    positions.commit(0)

    assert Positions(tmp_path, 0).get("8:1") == position(10)


def test_positions_that_did_not_change_cost_no_file_and_leave_none_behind(tmp_path: Path) -> None:
    positions = Positions(tmp_path, -1)
    positions.prepare(0, {"8:1": position(10)})
    positions.commit(0)
    positions.prepare(1, {"8:1": position(20)})

    positions.prepare(1, {"8:1": position(10)})
    positions.commit(1)

    assert [path.name for path in tmp_path.iterdir()] == ["log_positions.json"]
    assert Positions(tmp_path, 1).get("8:1") == position(10)


def test_only_the_newest_sent_batch_leaves_a_mark(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MIB)
    for number in range(3):
        spool.write(number, b"batch")
        batch = spool.oldest()
        assert batch is not None
        if number == 2:
            spool.reject(batch, "422")
        else:
            spool.done(batch)

    assert [path.name for path in tmp_path.glob("*.sent")] == [f"{2:020d}.sent"]
    assert Spool(tmp_path, MIB).next_sequence == 3
