"""What is looked for before an expression is tried must be what the expression needs."""

import re

import pytest

from flopwatch_agent.trainers.facts_table import LINES
from flopwatch_agent.trainers.literals import literals_of, may_fit
from flopwatch_agent.trainers.marks import FORMS


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"using world size: (?P<world_size>\d+)", ("using world size: ",)),
        (r"[Ww]orld[ _]size[:=] ?(\d+)", ("orld",)),
        (r"abcd?e{2}fghi", ("fghi",)),
        (r"number (?:of )?parameters\.: x", ("parameters.: x",)),
        (r"\bone two|three(?:a|b) four", ("one two", "three")),
        (r"[|(]abc|(?:x|y)", ()),
        (r"\d+ \w+", ()),
    ],
)
def test_the_longest_text_outside_of_groups_is_the_literal(pattern: str, literals: tuple[str, ...]) -> None:
    assert literals_of(re.compile(pattern)) == literals


def test_a_pattern_without_a_literal_may_fit_anything() -> None:
    assert may_fit((), "text")
    assert may_fit(("a b", "text"), "a text")
    assert not may_fit(("a b",), "a text")


def test_every_line_of_the_tables_has_one() -> None:
    assert [form.pattern for literal, form in LINES if len(literal) < 4] == []
    assert [form.pattern.pattern for form in FORMS if not form.literals] == []
