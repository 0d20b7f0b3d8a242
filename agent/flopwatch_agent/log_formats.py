"""``[[agent.log_format]]``: how in-house trainers print their steps."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flopwatch import settings
from flopwatch.settings import SettingError
from flopwatch_agent.trainers.userformat import UserFormat, user_format

KEYS = ("name", "expression", "units", "literal")


def log_formats(tables: tuple[Any, ...]) -> tuple[UserFormat, ...]:
    """The formats that the settings name.

    Raises:
        SettingError: a table lacks its expression, has an unknown key, or a value that cannot be used.
    """
    return tuple(_format(f"agent.log_format[{place}]", table) for place, table in enumerate(tables))


def configured_formats(path: Path | None, environ: Mapping[str, str]) -> tuple[UserFormat, ...]:
    """The formats of a settings file, for commands that users run; ``path``: as they named it.

    The node's own file holds the agent's token, so that a user may not be able to read it: then there are none.

    Raises:
        SettingError: the named file cannot be read, the file is not TOML, or a format cannot be used.
    """
    chosen = path or settings.default_file(environ)
    if path is None and chosen is not None and not os.access(chosen, os.R_OK):
        return ()
    table = settings.load(chosen).get("agent", {})
    formats = table.get("log_format", ()) if isinstance(table, Mapping) else ()
    if not isinstance(formats, list | tuple):
        raise SettingError("agent.log_format", formats, "tables [[agent.log_format]]")
    return log_formats(tuple(formats))


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
