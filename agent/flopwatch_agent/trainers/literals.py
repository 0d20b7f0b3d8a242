"""What a text must hold for an expression to fit: looked for first, as it costs a fraction of the expression."""

import re

_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]|\{\d+(?:,\d*)?\}|\(\?(?:P<\w+>|[:!=]|<[!=])|.", re.DOTALL)
_REPEATS = ("*", "?", "+")
_LEAST_CHARACTERS = 3


def literals_of(pattern: re.Pattern[str]) -> tuple[str, ...]:
    """One literal for each alternative of the pattern: where none of them stands, the pattern cannot fit.

    Empty when an alternative has none that is worth looking for, so that the pattern must always be tried.
    """
    found = [max(runs, key=len) for runs in _runs(pattern.pattern)]
    return tuple(found) if all(len(literal) >= _LEAST_CHARACTERS for literal in found) else ()


def may_fit(literals: tuple[str, ...], text: str) -> bool:
    """Whether the text holds what the pattern of these literals needs."""
    for literal in literals:
        if literal in text:
            return True
    return not literals


def _runs(source: str) -> list[list[str]]:
    """For each alternative the literals outside its groups."""
    alternatives: list[list[str]] = [[""]]
    depth = 0
    for part in _TOKEN.findall(source):
        runs = alternatives[-1]
        depth += part.startswith("(") - (part == ")")
        if depth or part == ")":
            runs.append("")
        elif part == "|":
            alternatives.append([""])
        elif part in _REPEATS or part.startswith("{"):
            runs[-1] = runs[-1][:-1]
            runs.append("")
        elif _is_literal(part):
            runs[-1] += part[-1]
        else:
            runs.append("")
    return alternatives


def _is_literal(part: str) -> bool:
    if len(part) > 1:
        return part[0] == "\\" and not part[1].isalnum()
    return part not in ".^$"
