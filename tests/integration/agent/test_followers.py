"""Many followed files: the quiet cost nothing, a dear one keeps nobody waiting and takes a bounded share."""

import itertools
import time
from pathlib import Path

import pytest

from flopwatch_agent import followers as module
from flopwatch_agent.followers import CPU_SECONDS_A_LOOK, Followers, is_quiet
from flopwatch_agent.log_file import LogFile
from flopwatch_agent.log_follow import Follower
from flopwatch_agent.trainers.reader import LogReader

ROW = "iter {}: loss 3.1234, time 250.00ms, mfu 40.00%\n"


def follower(path: Path, text: str) -> Follower:
    path.write_text(text)
    return Follower(
        file=LogFile(path, str(path)), job=path.stem, reader=LogReader(), run_start_seconds=time.time() - 5.0
    )


def steps(followers: Followers, now: float) -> list[tuple[str, int]]:
    return [(item.follower.job, row.step) for item in followers.poll(now) for row in item.output.steps]


def test_a_file_that_was_quiet_for_half_a_minute_is_looked_at_every_five_seconds(tmp_path: Path) -> None:
    followers, now = Followers(), time.time()
    one = follower(tmp_path / "a.log", "".join(ROW.format(n) for n in range(5)))
    followers.add(one)
    assert steps(followers, now) == [("a", n) for n in range(5)]
    for second in range(1, 41):
        steps(followers, now + second)

    looked = one.last_poll_seconds or 0.0
    with (tmp_path / "a.log").open("a") as log:
        log.write(ROW.format(5) + ROW.format(6))

    assert is_quiet(one, looked + 4.9)
    assert steps(followers, looked + 4.9) == []
    assert steps(followers, looked + 5.1) == [("a", 5), ("a", 6)]
    assert not is_quiet(one, looked + 5.2)


def test_a_clock_that_is_set_back_leaves_no_file_unread(tmp_path: Path) -> None:
    followers, now = Followers(), time.time()
    one = follower(tmp_path / "a.log", ROW.format(0))
    followers.add(one)
    for second in range(60):
        steps(followers, now + second)

    assert not is_quiet(one, now - 3600.0)


def test_a_look_takes_a_bounded_time_and_the_next_begins_where_it_stopped(tmp_path: Path) -> None:
    ticks = itertools.count()
    followers = Followers(spent=lambda: next(ticks) * CPU_SECONDS_A_LOOK)
    for name in "abc":
        followers.add(follower(tmp_path / f"{name}.log", "".join(ROW.format(n) for n in range(5))))
    now = time.time()

    looks = [{job for job, _ in steps(followers, now + look)} for look in range(3)]

    assert looks == [{"a"}, {"b"}, {"c"}]


def test_a_look_reads_a_bounded_number_of_bytes_and_serves_every_file_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = "".join(ROW.format(n) for n in range(100))
    monkeypatch.setattr(module, "BYTES_A_LOOK", len(whole))
    monkeypatch.setattr(module, "BYTES_A_FILE", len(whole))
    followers, now = Followers(), time.time()
    for name in "ab":
        followers.add(follower(tmp_path / f"{name}.log", whole))

    looks = [[job for job, _ in steps(followers, now + look)] for look in range(2)]

    assert looks == [["a"] * 100, ["b"] * 100]


def test_a_file_that_is_let_go_while_files_are_read_is_not_read_on(tmp_path: Path) -> None:
    followers, now = Followers(), time.time()
    for name in "ab":
        followers.add(follower(tmp_path / f"{name}.log", ROW.format(1)))

    seen = []
    for polled in followers.poll(now):
        seen.append(polled.follower.job)
        if polled.follower.job == "a":
            followers.remove(polled.follower)

    assert seen[0] == "a"
    assert seen.count("a") == 1
    assert [follower.job for _, follower in followers] == ["b"]
    assert followers.of_job("a") == []


STAMPED = (
    " [2026-11-30 10:00:{:02d}.000000] iteration {:8d}/ 1000 | consumed samples: 64 | "
    "elapsed time per iteration (ms): 500.0 | global batch size: 32 | lm loss: 3.0E+00 |\n"
)


@pytest.mark.parametrize(("row", "by_arrival"), [(ROW, True), (STAMPED, False)])
def test_only_rows_without_a_time_of_their_own_must_be_read_as_they_come(
    tmp_path: Path, row: str, by_arrival: bool
) -> None:
    followers, now = Followers(), time.time()
    one = follower(tmp_path / "a.log", "")
    followers.add(one)
    assert not followers.needs_arrivals(now), "nothing has come to it"

    for second in range(5):
        with (tmp_path / "a.log").open("a") as log:
            log.write(row.format(second, second))
        list(followers.poll(now + second))
    # A reader that waits for the rest of a row is asked once more.
    seen = [item.output.steps for item in followers.poll(now + 5.0)]

    assert one.rows_seen >= 4, seen
    assert followers.needs_arrivals(now + 5.0) is by_arrival
    assert not followers.needs_arrivals(now + 60.0), "it has been quiet since"
