from flopwatch_collector.api.limits import MAX_SENDERS, RateLimit


def test_a_sender_may_burst_ten_seconds_worth_and_then_waits_for_one() -> None:
    limit = RateLimit(2.0)

    waits = [limit.wait_seconds("a", 0.0) for _ in range(21)]

    assert waits[:20] == [0.0] * 20
    assert waits[20] == 0.5


def test_after_the_wait_one_more_is_allowed() -> None:
    limit = RateLimit(2.0)
    for _ in range(20):
        limit.wait_seconds("a", 0.0)

    assert limit.wait_seconds("a", 0.5) == 0.0
    assert limit.wait_seconds("a", 0.5) == 0.5


def test_senders_do_not_share_a_limit() -> None:
    limit = RateLimit(0.1)
    limit.wait_seconds("a", 0.0)

    assert limit.wait_seconds("a", 0.0) > 0.0
    assert limit.wait_seconds("b", 0.0) == 0.0


def test_asking_without_taking_leaves_the_level() -> None:
    limit = RateLimit(0.1)

    assert [limit.wait_seconds("a", 0.0, take=False) for _ in range(3)] == [0.0] * 3


def test_the_number_of_senders_is_bounded() -> None:
    limit = RateLimit(1.0)

    for number in range(MAX_SENDERS + 10):
        limit.wait_seconds(str(number), 0.0)

    assert len(limit._buckets) == MAX_SENDERS
