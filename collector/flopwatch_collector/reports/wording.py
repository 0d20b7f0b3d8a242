"""Texts and numbers of a report in its language. Pure."""

from dataclasses import dataclass
from datetime import datetime, tzinfo
from html import escape
from typing import Literal

from flopwatch import cause_words
from flopwatch.answers.job import Cause
from flopwatch_collector.reports import texts_en, texts_zh

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
TABLES = {"en": texts_en.TEXTS, "zh": texts_zh.TEXTS}
SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "CNY": "¥", "JPY": "¥"}
MINUS = "\N{MINUS SIGN}"
HOUR_MILLISECONDS = 3_600_000.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """Says things in one language; unknown is said as unknown."""

    language: Language
    zone: tzinfo
    currency: str

    def __call__(self, key: str, **values: object) -> str:
        """The text of a key, with values put in."""
        return TABLES[self.language][key].format(**values)

    def html(self, key: str, **values: object) -> str:
        """The same, safe in HTML."""
        return escape(self(key, **values))

    def ratio(self, value: float | None, digits: int = 1) -> str:
        """A percentage."""
        return self("unknown") if value is None else f"{value * 100:.{digits}f} %"

    def hours(self, milliseconds: int | None) -> str:
        """GPU-hours as a plain number."""
        if milliseconds is None:
            return self("unknown")
        value = milliseconds / HOUR_MILLISECONDS
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}"

    def money(self, value: float | None, digits: int | None = None) -> str:
        """An amount in the site's currency."""
        if value is None:
            return self("unknown")
        places = digits if digits is not None else (0 if abs(value) >= 1000 else 2)
        sign = MINUS if round(value, places) < 0 else ""
        symbol = SYMBOLS.get(self.currency)
        number = f"{abs(value):,.{places}f}"
        return f"{sign}{symbol}{number}" if symbol else f"{sign}{number} {self.currency}"

    def duration(self, seconds: float | None) -> str:
        """A length of time."""
        if seconds is None:
            return self("unknown")
        if seconds < 120:
            return f"{seconds:.1f} s"
        return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

    def time(self, seconds: float | None) -> str:
        """A local time, to the minute."""
        if seconds is None:
            return self("unknown")
        return datetime.fromtimestamp(seconds, tz=self.zone).strftime("%Y-%m-%d %H:%M")

    def count(self, value: int | None) -> str:
        """A whole number."""
        return self("unknown") if value is None else f"{value:,}"

    def cause(self, cause: Cause | None) -> str:
        """A likely cause in words."""
        if cause is None:
            return self("none")
        if cause.source == "diagnosis":
            return cause_words.said(cause, self.language)
        values = {
            name: f"{value:,.1f}" if isinstance(value, float) else str(value)
            for name, value in cause.values.items()
        }
        table = cause_words.TABLES[self.language]
        return table.get(f"cause.{cause.code}", table["cause.generic"]).format_map(_Missing(values))


class _Missing(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"
