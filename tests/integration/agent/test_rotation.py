"""A log that is rotated while it is followed: every row once, whatever the program that rotates does."""

import gzip
import os
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flopwatch_agent.log_file import LogFile
from flopwatch_agent.log_follow import Follower
from flopwatch_agent.trainers.reader import LogReader

ROW = "iter {}: loss 2.5, time 250.00ms, mfu 40.00%\n"
BUDGET = 1 << 20


def poll(follower: Follower, now: float) -> list[int]:
    return [row.step for row in follower.poll(now, BUDGET)[0].steps]


def opened(path: Path, begin: float) -> Follower:
    return Follower(file=LogFile(path, str(path)), job="job", reader=LogReader(), run_start_seconds=begin)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.integers(1, 6), min_size=2, max_size=8), renamed=st.data())
def test_each_row_is_read_once_over_copied_and_truncated_and_over_renamed_files(
    tmp_path: Path, batches: list[int], renamed: st.DataObject
) -> None:
    log = tmp_path / "train.log"
    log.write_text("")
    begin = log.stat().st_mtime
    follower, now, step, found = opened(log, begin - 5.0), begin, 0, list[int]()
    for number, batch in enumerate(batches):
        with log.open("a") as file:
            file.write("".join(ROW.format(step + n) for n in range(batch)))
        step, now = step + batch, now + 1.0
        found += poll(follower, now)
        old = tmp_path / f"train.log.{number}"
        if renamed.draw(st.booleans(), label="renamed"):
            log.rename(old)
            log.write_text("")
            follower.file.close()
            follower = opened(log, begin - 5.0)
        else:
            old.write_bytes(log.read_bytes())
            os.truncate(log, 0)
            found += poll(follower, now + 0.5)
        with gzip.open(f"{old}.gz", "wb") as packed:
            packed.write(old.read_bytes())
        old.unlink()
    follower.file.close()
    log.unlink()

    assert found == list(range(step))
