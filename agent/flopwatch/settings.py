"""Settings once: one TOML file, ``FLOPWATCH_…`` overrides, secrets also as ``…_FILE``.

A wrong setting stops the start with its name, its value and what is allowed.
"""

import dataclasses
import datetime
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SYSTEM_FILE = Path("/etc/flopwatch/flopwatch.toml")
T = TypeVar("T")


class SettingError(ValueError):
    """A setting is wrong; the message has its name, its value and what is allowed."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        missing = name.startswith("-") and value is None
        what = f"option {name} is missing" if missing else f"setting {name} is {value!r}"
        super().__init__(f"{what}; allowed: {allowed}")
        self.name = name
        self.value = value
        self.allowed = allowed


def default_file(environ: Mapping[str, str]) -> Path | None:
    """The settings file used when none is named: the system's, then the user's, else None."""
    home = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "/")) / ".config")
    candidates = (SYSTEM_FILE, Path(home) / "flopwatch" / "flopwatch.toml")
    return next((path for path in candidates if path.is_file()), None)


def load(path: Path | None, option: str = "--config") -> dict[str, Any]:
    """The tables of a settings file; ``option`` is what named it, for messages.

    Raises:
        SettingError: the file cannot be read or is not TOML.
    """
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(option, str(path), f"a readable file ({error.strerror})") from error
    except ValueError as error:
        raise SettingError(option, str(path), f"valid TOML ({error})") from error


def section(kind: type[T], name: str, tables: Mapping[str, Any], environ: Mapping[str, str]) -> T:
    """The dataclass ``kind`` filled from table ``name``, then from ``FLOPWATCH_<NAME>_<FIELD>``.

    ``FLOPWATCH_<NAME>_<FIELD>_FILE`` names a file that holds the value. Fields of ``kind`` are the settings;
    its ``__post_init__`` may raise ``SettingError`` for values that are out of range.

    Raises:
        SettingError: an unknown setting, or a value of the wrong type.
    """
    table = tables.get(name, {})
    if not isinstance(table, Mapping):
        raise SettingError(name, table, "a table")
    fields = {field.name: field for field in dataclasses.fields(typing.cast(Any, kind))}
    unknown = sorted(set(table) - set(fields))
    if unknown:
        raise SettingError(f"{name}.{unknown[0]}", table[unknown[0]], "one of " + ", ".join(sorted(fields)))
    hints = typing.get_type_hints(kind)
    values = {key: _checked(f"{name}.{key}", value, hints[key]) for key, value in table.items()}
    for key in fields:
        text = _from_environment(f"FLOPWATCH_{name}_{key}".upper().replace(".", "_"), environ)
        if text is not None:
            values[key] = _parsed(f"{name}.{key}", text, hints[key])
    return kind(**values)


def _from_environment(variable: str, environ: Mapping[str, str]) -> str | None:
    if variable in environ:
        return environ[variable]
    file = environ.get(variable + "_FILE")
    if file is None:
        return None
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingError(variable + "_FILE", file, f"a readable file ({error.strerror})") from error


def _parsed(name: str, text: str, hint: Any) -> Any:
    """An environment variable's text as the type a setting has."""
    plain = _without_none(hint)
    if plain is bool:
        words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        if text.lower() not in words:
            raise SettingError(name, text, "true or false")
        return words[text.lower()]
    if typing.get_origin(plain) is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        value = plain(text) if plain in (int, float, Path) else text
    except ValueError as error:
        raise SettingError(name, text, f"a value of type {plain.__name__}") from error
    return _checked(name, value, hint)


def _checked(name: str, value: Any, hint: Any) -> Any:
    """``value`` as the setting's type: numbers widen, arrays become tuples, paths are made from text."""
    plain = _without_none(hint)
    if typing.get_origin(plain) is typing.Literal:
        if value not in typing.get_args(plain):
            raise SettingError(name, value, "one of " + ", ".join(map(str, typing.get_args(plain))))
        return value
    if plain is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if plain is datetime.date:
        return _date(name, value)
    if typing.get_origin(plain) is tuple and isinstance(value, list):
        return tuple(value)
    origin = typing.get_origin(plain) or plain
    if origin is Path and isinstance(value, str):
        return Path(value)
    if not isinstance(value, origin) or (isinstance(value, bool) and origin is not bool):
        raise SettingError(name, value, f"a value of type {origin.__name__}")
    return value


def _date(name: str, value: object) -> datetime.date:
    """A TOML date, or its text; of a time of day the date."""
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise SettingError(name, value, "a date such as 2026-11-30") from None


def _without_none(hint: Any) -> Any:
    """``X`` of ``X | None``."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint
