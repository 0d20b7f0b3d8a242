"""Matchers of labels as Alertmanager has them: ``=``, ``!=``, ``=~``, ``!~``, for the whole value. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

LONGEST_VALUE = 500
ALLOWED = "label=text, label!=text, label=~expression or label!~expression"
_SHAPE = re.compile(r"\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.DOTALL)


class MatcherError(ValueError):
    """A matcher cannot be understood; the message has it and what is allowed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Matcher:
    """One condition on one label; a label that is not there is empty."""

    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil it."""
        found = labels.get(self.name, "")
        same = _compiled(self.value).fullmatch(found) is not None if self.is_regex else found == self.value
        return same == self.is_equal

    def __str__(self) -> str:
        sign = ("" if self.is_equal else "!") + ("~" if self.is_regex else "")
        sign = {"": "=", "~": "=~", "!": "!=", "!~": "!~"}[sign]
        return f"{self.name}{sign}{self.value}"


def parsed(text: str) -> Matcher:
    """A matcher from its text; the value may be in double quotes.

    Raises:
        MatcherError: it is none.
    """
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise MatcherError(f"matcher {text[:80]!r} cannot be understood; allowed: {ALLOWED}")
    name, sign, value = found.groups()
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1].replace('\\"', '"')
    return checked(Matcher(name=name, value=value, is_regex=sign.endswith("~"), is_equal=sign[0] == "="))


def checked(matcher: Matcher) -> Matcher:
    """The matcher, when it can be used.

    Raises:
        MatcherError: its expression is none, or too long.
    """
    if len(matcher.value) > LONGEST_VALUE:
        raise MatcherError(f"matcher of {matcher.name} is too long; allowed: {LONGEST_VALUE} characters")
    if matcher.is_regex:
        try:
            _compiled(matcher.value)
        except re.error as error:
            raise MatcherError(
                f"matcher {matcher} is no regular expression ({error}); allowed: {ALLOWED}"
            ) from None
    return matcher


def all_match(matchers: Sequence[Matcher], labels: Mapping[str, str]) -> bool:
    """Whether the labels fulfil every matcher."""
    return all(matcher.matches(labels) for matcher in matchers)


@lru_cache(maxsize=1_024)
def _compiled(expression: str) -> "re.Pattern[str]":
    return re.compile(expression, re.DOTALL)
