import pytest

from flopwatch_collector.ingest.place import clock_offset

EIGHT_HOURS = 8 * 3600.0


@pytest.mark.parametrize(
    ("sampled", "received", "sent", "offset"),
    [
        pytest.param(1000.0, 1001.0, 1000.5, 0.0, id="right clock"),
        pytest.param(1000.0, 1002.4, 1000.5, 0.0, id="skew within two seconds"),
        pytest.param(1000.0, 900_000.0, 899_999.9, 0.0, id="spooled for days on a right clock"),
        pytest.param(
            1000.0 + EIGHT_HOURS, 1001.0, 1001.0 + EIGHT_HOURS, -EIGHT_HOURS, id="eight hours ahead"
        ),
        pytest.param(1000.0, 1000.0 + EIGHT_HOURS, 1000.0, EIGHT_HOURS, id="eight hours behind"),
        pytest.param(1000.0, 1000.0 + EIGHT_HOURS, None, 0.0, id="old, and no time of sending"),
        pytest.param(5000.0, 1000.0, None, -4000.0, id="from the future, and no time of sending"),
        pytest.param(60.0, 1.8e9, None, 1.8e9 - 60.0, id="a clock that is not set, and no time of sending"),
        pytest.param(5000.0, 1000.0, 1000.0, -4000.0, id="sampled after it was sent"),
    ],
)
def test_offset_is_what_makes_the_nodes_time_ours(
    sampled: float, received: float, sent: float | None, offset: float
) -> None:
    assert clock_offset(sampled, received, sent) == pytest.approx(offset)
