from hypothesis import given
from hypothesis import strategies as st

from flopwatch_collector.ingest.spans import MAX_SPANS, Spans

RANGES = st.tuples(st.booleans(), st.integers(0, 60), st.integers(0, 8))


@given(st.lists(RANGES, max_size=40))
def test_spans_hold_what_a_set_holds(changes: list[tuple[bool, int, int]]) -> None:
    spans, expected = Spans(), set()

    for add, first, length in changes:
        numbers = range(first, first + length + 1)
        if add:
            spans.add(first, first + length)
            expected.update(numbers)
        else:
            spans.discard(first, first + length)
            expected.difference_update(numbers)

    assert {number for number in range(80) if number in spans} == expected


def test_numbers_in_a_row_take_one_span_and_gaps_are_bounded() -> None:
    spans = Spans()

    for number in range(0, 10 * MAX_SPANS, 2):
        spans.add(number, number)

    assert 0 not in spans
    assert 10 * MAX_SPANS - 2 in spans
    assert len(spans._first) == MAX_SPANS
