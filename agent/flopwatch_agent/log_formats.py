"""``[[agent.log_format]]``: how in-house trainers print their steps."""

from collections.abc import Mapping
from typing import Any

from flopwatch.settings import SettingError
from flopwatch_agent.trainers.userformat import UserFormat, user_format

KEYS = ("name", "expression", "units", "literal")


def log_formats(tables: tuple[Any, ...]) -> tuple[UserFormat, ...]:
    """The formats that the settings name.

    Raises:
        SettingError: a table lacks its expression, has an unknown key, or a value that cannot be used.
    """
    return tuple(_format(f"agent.log_format[{place}]", table) for place, table in enumerate(tables))


def _format(setting: str, table: Any) -> UserFormat:
    if not isinstance(table, Mapping):
        raise SettingError(setting, table, "a table [[agent.log_format]] of the settings file")
    unknown = sorted(set(table) - set(KEYS))
    if unknown:
        raise SettingError(f"{setting}.{unknown[0]}", table[unknown[0]], "one of " + ", ".join(KEYS))
    name, expression, literal = (_text(setting, table, key) for key in ("name", "expression", "literal"))
    if not expression:
        raise SettingError(f"{setting}.expression", expression, "an expression with the named group step")
    units = table.get("units", {})
    if not isinstance(units, Mapping):
        raise SettingError(f"{setting}.units", units, "a table of a unit for each group")
    try:
        return user_format(expression, units, literal=literal, name=name or "user format")
    except ValueError as error:
        key, value = ("units", units) if "unit" in str(error) else ("expression", expression)
        raise SettingError(f"{setting}.{key}", value, f"one that can be used: {error}") from error


def _text(setting: str, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise SettingError(f"{setting}.{key}", value, "text")
    return value
