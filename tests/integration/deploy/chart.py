"""Renders the Helm chart by the part of Go's templates that it keeps to.

``{{- if PATH }}`` … ``{{- end }}`` on lines of their own, ``{{ PATH }}``, and the pipes ``quote``, ``toYaml`` and
``nindent``. Anything else in a template is refused, so that the chart stays within what is rendered here.
"""

import json
import re
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[3] / "deploy" / "helm" / "flopwatch"
ACTION = re.compile(r"(?P<left>\n[ \t]*\{\{-|\{\{)\s*(?P<body>.*?)\s*\}\}")
PATH = re.compile(r"\.(?:Values|Release)(?:\.\w+)+")


class UnknownActionError(Exception):
    """A template uses what is not rendered here."""


def default_values() -> Any:
    return yaml.safe_load((CHART / "values.yaml").read_text())


def merged(base: Any, changes: dict[str, Any]) -> Any:
    return {
        **base,
        **{
            key: merged(base[key], value) if isinstance(value, dict) else value
            for key, value in changes.items()
        },
    }


def rendered(changes: dict[str, Any] | None = None, namespace: str = "flopwatch") -> str:
    """All templates, one document after another."""
    scope = {"Values": merged(default_values(), changes or {}), "Release": {"Namespace": namespace}}
    texts = (render(path.read_text(), scope).strip() for path in sorted((CHART / "templates").glob("*.yaml")))
    return "\n---\n".join(text for text in texts if text) + "\n"


def documents(changes: dict[str, Any] | None = None) -> list[Any]:
    return [item for item in yaml.safe_load_all(rendered(changes)) if item]


def render(template: str, scope: dict[str, Any]) -> str:
    out: list[str] = []
    shown = [True]
    position = 0
    template = "\n" + template
    for match in ACTION.finditer(template):
        if all(shown):
            out.append(template[position : match.start()])
        position = match.end()
        body = match["body"]
        if body.startswith("if "):
            shown.append(bool(value_of(body[3:], scope)))
        elif body == "end":
            shown.pop()
        elif all(shown):
            out.append(piped(body, scope))
    out.append(template[position:])
    return "".join(out)


def piped(body: str, scope: dict[str, Any]) -> str:
    first, *pipes = [part.strip() for part in body.split("|")]
    name, _, argument = first.partition(" ")
    value = yaml_of(value_of(argument, scope)) if name == "toYaml" else value_of(first, scope)
    for pipe in pipes:
        value = through(pipe, value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def through(pipe: str, value: Any) -> str:
    word, _, argument = pipe.partition(" ")
    if word == "quote" and not argument:
        return json.dumps(str(value))
    if word == "nindent" and argument.isdigit():
        return "\n" + "\n".join(f"{' ' * int(argument)}{line}" for line in str(value).split("\n"))
    raise UnknownActionError(pipe)


def value_of(path: str, scope: dict[str, Any]) -> Any:
    if not PATH.fullmatch(path):
        raise UnknownActionError(path)
    value: Any = scope
    for name in path[1:].split("."):
        value = value[name]
    return value


def yaml_of(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=False).rstrip("\n")
