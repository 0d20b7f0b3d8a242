"""Arguments as a log or a command line spells them, made into values."""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from flopwatch.blocks import MOST_LAYERS, ShapeError, require_whole

_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None, "null": None, "": None}


def named(arguments: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Arguments by their name with underscores: from a mapping, or from the words of a command line.

    A flag without a value is true; a flag with several values is a list; words before the first flag are
    left out (the program and its script).
    """
    if isinstance(arguments, Mapping):
        return {_name(key): _value(value) for key, value in arguments.items()}
    result: dict[str, Any] = {}
    current: str | None = None
    for word in arguments:
        if word.startswith("--") and len(word) > 2:
            current, equals, text = word.partition("=")
            current = _name(current)
            result[current] = _value(text) if equals else True
        elif current is not None:
            result[current] = _joined(result[current], _value(word))
    return result


def _name(key: str) -> str:
    return key.strip().lstrip("-").replace("-", "_").lower()


def _joined(before: Any, value: Any) -> Any:
    """The value of a flag after one more word of it."""
    if before is True:
        return value
    return [*before, value] if isinstance(before, list) else [before, value]


def _value(value: Any) -> Any:
    """A printed word as a value: numbers, lists, true, false and none; anything else stays text."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def whole(arguments: Mapping[str, Any], *names: str, minimum: int = 1, default: int | None = None) -> int:
    """The first of the named arguments that is given, as a whole number; else ``default``.

    Raises:
        ShapeError: none is given and there is no default, or it is not a whole number of at least ``minimum``.
    """
    for name in names:
        if arguments.get(name) is not None:
            return require_whole(name, arguments[name], minimum)
    return require_whole(names[0], default, minimum)


def flag(arguments: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    """A yes or no.

    Raises:
        ShapeError: the argument is something else.
    """
    value = arguments.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ShapeError(name, value, "true or false")
    return value


def pattern(name: str, value: Any, layers: int) -> list[int]:
    """One 0 or 1 a layer from a list, or from an expression of lists such as ``([0]*3+[1]*58)``.

    Raises:
        ShapeError: it is neither, or has another length than ``layers``.
    """
    found = value
    if isinstance(value, str):
        try:
            found = _listed(ast.parse(value, mode="eval").body)
        except (ValueError, SyntaxError) as error:
            raise ShapeError(name, value, "a list, or lists with + and *") from error
    if not isinstance(found, list | tuple) or any(item not in (0, 1) for item in found):
        raise ShapeError(name, value, "one 0 or 1 a layer")
    if len(found) != layers:
        raise ShapeError(name, value, f"as many entries as layers ({layers})")
    return [int(item) for item in found]


def _listed(node: ast.expr) -> Any:
    """The value of an expression made of numbers, lists, + and * only."""
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.List(elts=items):
            return [_listed(item) for item in items]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _listed(left), _listed(right)
            if isinstance(first, list) and isinstance(second, list):
                return first + second
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _repeated(_listed(left), _listed(right))
    raise ValueError("not lists with + and *")


def _repeated(items: Any, times: Any) -> list[Any]:
    """A list, so many times."""
    if isinstance(items, int):
        items, times = times, items
    if not isinstance(items, list) or not isinstance(times, int) or len(items) * times > MOST_LAYERS:
        raise ValueError("not a list times a number")
    return items * times
