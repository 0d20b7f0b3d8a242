"""Texts of the interface in the reader's language."""

import functools
from collections.abc import Mapping
from string import Formatter
from typing import Any, Literal

from flopwatch_dashboard.texts.en import TEXTS as ENGLISH
from flopwatch_dashboard.texts.zh import TEXTS as CHINESE

Language = Literal["en", "zh"]
TABLES: Mapping[Language, Mapping[str, str]] = {"en": ENGLISH, "zh": CHINESE}


def t(lang: Language, key: str, **values: Any) -> str:
    """The text of ``key`` with its placeholders filled.

    Raises:
        KeyError: no such key, or a placeholder without a value.
    """
    return TABLES[lang][key].format(**values)


@functools.cache
def placeholders(key: str) -> tuple[str, ...]:
    """The names a text wants filled; the same in every language."""
    return tuple(name for _, name, _, _ in Formatter().parse(ENGLISH[key]) if name)


def known(key: str) -> bool:
    """Whether there is a text for a code that came from outside."""
    return key in ENGLISH
