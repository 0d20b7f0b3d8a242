import msgspec

from flopwatch.answers.diagnosis import Diagnosis, Sign
from flopwatch.encoding import encode
from flopwatch_dashboard.text import TABLES

HANG = Diagnosis(
    code="hang",
    confidence="high",
    evidence=(
        Sign(code="no_step", value=700.0, unit="seconds", reference=9.0),
        Sign(code="hardware", value="throttle", unit="text"),
    ),
    missing=("power",),
    lost_ratio=1.0,
)


def test_a_diagnosis_travels_whole() -> None:
    assert msgspec.json.decode(encode(HANG), type=Diagnosis) == HANG


def test_its_codes_have_words_in_both_languages() -> None:
    keys = (
        "diagnosis.hang",
        "next.hang",
        "sign.no_step",
        "hardware.throttle",
        "signal.power",
        "confidence.high",
    )

    assert [(language, key) for language, table in TABLES.items() for key in keys if key not in table] == []
