from typing import get_args

import pytest

from flopwatch.answers.diagnosis import DiagnosisCode
from flopwatch.cause_words import TABLES, said
from flopwatch.query import Cause
from flopwatch_collector.compute.cause import CODES
from flopwatch_dashboard.texts import en, zh

PAGES = {"en": en.TEXTS, "zh": zh.TEXTS}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_messages_say_of_every_cause_what_the_pages_say(language: str) -> None:
    table = TABLES[language]  # type: ignore[index]

    assert {key: PAGES[language][key] for key in table} == dict(table)
    assert {f"diagnosis.{code}" for code in get_args(DiagnosisCode)} <= set(table)
    assert {f"cause.{code}" for code, _ in CODES.values()} <= set(table)


def test_a_cause_is_said_with_its_values_and_an_unknown_one_as_no_single_cause() -> None:
    slow = Cause(
        code="straggler_node", severity="warning", values={"subject": "n7", "ratio": 0.2}, source="diagnosis"
    )
    hang = Cause(code="hang", severity="critical", values={"hours": 9.04})

    assert said(slow, "en") == "One node is slower than its peers: n7"
    assert said(slow, "zh") == "有一个节点慢于同组：n7"  # noqa: RUF001 - Chinese
    assert said(hang, "en") == "No step for 9 h"
    assert said(Cause(code="new", severity="info", values={}), "en") == "No single cause"
    assert said(
        Cause(code="throttled", severity="warning", values={"subject": None}, source="diagnosis"), "en"
    ) == ("Throttled clocks: ?")
