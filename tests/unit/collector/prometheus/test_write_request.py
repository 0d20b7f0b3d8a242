import math

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.collector.prometheus.wire_format import read_request, unsnap

from flopwatch import fleet_metrics
from flopwatch_collector.prometheus.samples import Reading, Sample, SeriesBook, labels_of
from flopwatch_collector.prometheus.snappy import SnappyWriter
from flopwatch_collector.prometheus.write_request import encode


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=200)), max_size=60))
def test_a_snappy_block_holds_what_was_added(pieces: list[tuple[bool, bytes]]) -> None:
    writer = SnappyWriter()
    for again, piece in pieces:
        writer.add(piece) if again else writer.add_once(piece)

    assert unsnap(writer.finish()) == b"".join(piece for _, piece in pieces)


def test_a_piece_farther_back_than_64_kb_is_written_out_again() -> None:
    writer = SnappyWriter()
    for part in (b"label-of-a-job", bytes(70_000), b"label-of-a-job"):
        writer.add(part)

    assert unsnap(writer.finish()) == b"label-of-a-job" + bytes(70_000) + b"label-of-a-job"


def test_a_request_is_the_bytes_that_protobuf_says() -> None:
    sample = Sample(labels=(("__name__", "up"),), value=1.0, time_milliseconds=1)

    body = unsnap(encode([sample]))

    # TimeSeries of 29 bytes: Label{"__name__", "up"} of 14, Sample{1.0, 1} of 11, each with two bytes before it.
    assert body == (
        b"\x0a\x1d\x0a\x0e\x0a\x08__name__\x12\x02up\x12\x0b\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\x01"
    )


def test_a_request_is_read_back_whatever_its_labels_say() -> None:
    samples = [
        Sample(
            labels=(("__name__", "a"), ("name", "ünï \n")), value=-0.25, time_milliseconds=1_800_000_000_000
        ),
        Sample(
            labels=(("__name__", "a"), ("name", "b" * 300)),
            value=math.inf,
            time_milliseconds=1_800_000_000_000,
        ),
        Sample(labels=(("__name__", "c"),), value=None, time_milliseconds=1_800_000_000_001),
    ]

    found = read_request(encode(samples))

    assert [(each.labels, each.time_milliseconds) for each in found] == [
        (each.labels, each.time_milliseconds) for each in samples
    ]
    assert [found[0].value, found[1].value] == [-0.25, math.inf]
    assert found[2].bits == 0x7FF0000000000002


def test_labels_that_repeat_cost_a_few_bytes() -> None:
    samples = [
        Sample(
            labels=(
                ("__name__", "flopwatch_job_mfu_ratio"),
                ("cluster", "frankfurt-1"),
                ("job_id", f"{job:064d}"),
            ),
            value=0.4,
            time_milliseconds=1_800_000_000_000,
        )
        for job in range(10)
        for _ in range(10)
    ]

    body = encode(samples)

    assert len(body) < len(unsnap(body)) / 3


def reading(job: str, value: float = 1.0) -> Reading:
    return Reading(metric=fleet_metrics.JOB_GPUS, values=("a", job), value=value)


def test_labels_are_sorted_and_an_empty_one_is_left_out() -> None:
    alert = Reading(
        metric=fleet_metrics.ALERT, values=("JobHang", "firing", "critical", "a", "", "n1"), value=1.0
    )

    assert labels_of(alert, {"site": "x"}) == (
        ("__name__", "flopwatch_alert_active"), ("alertname", "JobHang"), ("alertstate", "firing"), ("cluster", "a"),
        ("node", "n1"), ("severity", "critical"), ("site", "x"),
    )  # fmt: skip


def test_a_series_that_ends_is_marked_stale_once() -> None:
    book = SeriesBook({})
    book.at([reading("1"), reading("2")], 100.0)

    second = book.at([reading("2")], 160.0)
    third = book.at([reading("2")], 220.0)

    assert [(dict(each.labels)["job_id"], each.value) for each in second] == [("1", None), ("2", 1.0)]
    assert [(dict(each.labels)["job_id"], each.value) for each in third] == [("2", 1.0)]


def test_a_clock_that_stands_or_goes_back_makes_no_sample() -> None:
    book = SeriesBook({})
    book.at([reading("1")], 100.0)

    assert book.at([reading("1", 2.0)], 100.0) == []
    assert book.at([reading("1", 2.0)], 99.0) == []
    assert [each.time_milliseconds for each in book.at([reading("1", 2.0)], 100.001)] == [100_001]
