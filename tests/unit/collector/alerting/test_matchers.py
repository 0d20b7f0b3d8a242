import pytest

from flopwatch_collector.alerting.matchers import MatcherError, parsed

LABELS = {"alertname": "MfuLow", "job": "llama-70b", "cluster": "a"}


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("alertname=MfuLow", True),
        ('alertname="MfuLow"', True),
        ("alertname=Mfu", False),
        ("alertname!=NodeDown", True),
        ("job=~llama.*", True),
        ("job=~llama", False),
        ("job!~gpt.*|mixtral.*", True),
        ("node=", True),
        ("node!=", False),
        ("cluster = a", True),
    ],
)
def test_a_matcher_is_asked_of_the_whole_value_and_a_missing_label_is_empty(text: str, fits: bool) -> None:
    assert parsed(text).matches(LABELS) is fits


@pytest.mark.parametrize("text", ["", "alertname", "=x", "job=~[", "7x=1", "job=~" + "a" * 501])
def test_what_is_no_matcher_is_refused(text: str) -> None:
    with pytest.raises(MatcherError, match="matcher"):
        parsed(text)


def test_a_matcher_is_written_as_it_is_read() -> None:
    for text in ("a=b", "a!=b", "a=~b.*", "a!~b.*"):
        assert str(parsed(text)) == text
