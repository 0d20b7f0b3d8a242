import threading

from flopwatch_collector.views.memo import KEPT_ANSWERS, Memo


class Maker:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        return self.calls


def test_an_answer_is_kept_while_nothing_changes_and_for_ten_seconds_at_most() -> None:
    memo, make = Memo(), Maker()

    answers = [memo.get("fleet", 1, now, make) for now in (100.0, 109.9, 110.0)]

    assert answers == [1, 1, 2]


def test_a_change_is_seen_after_two_seconds() -> None:
    memo, make = Memo(), Maker()

    answers = [
        memo.get("fleet", generation, now, make) for generation, now in ((1, 100.0), (2, 101.9), (3, 102.0))
    ]

    assert answers == [1, 1, 2]


def test_each_question_has_its_own_answer_and_old_ones_go() -> None:
    memo, make = Memo(), Maker()

    for number in range(KEPT_ANSWERS + 1):
        memo.get(number, 1, 100.0, make)
    memo.get(KEPT_ANSWERS, 1, 100.0, make)
    assert make.calls == KEPT_ANSWERS + 1
    memo.get(0, 1, 100.0, make)

    assert make.calls == KEPT_ANSWERS + 2


def test_a_clock_that_was_set_back_does_not_freeze_an_answer() -> None:
    memo, make = Memo(), Maker()

    assert [memo.get("fleet", 1, now, make) for now in (100.0, 50.0)] == [1, 2]


def test_readers_at_the_same_time_make_it_once() -> None:
    memo, make = Memo(), Maker()
    begin = threading.Barrier(8)

    def read() -> None:
        begin.wait()
        memo.get("fleet", 1, 100.0, make)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert make.calls == 1


def test_what_was_asked_lately_is_made_before_the_next_reader_waits() -> None:
    memo, make = Memo(), Maker()
    memo.get("fleet", 1, 100.0, make)

    assert memo.again(1, 105.0, 30.0) == 0
    assert memo.again(2, 110.0, 30.0) == 1
    assert memo.get("fleet", 2, 113.0, make) == 2
    assert memo.again(3, 150.0, 30.0) == 0
