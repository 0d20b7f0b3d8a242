"""How configurations are printed over several lines: where such a dump begins, and what its pairs look like."""

import re
from collections.abc import Iterator

OPENING = (
    (
        "json",
        re.compile(
            r"(?:[Cc]onfigs?(?:Container)?|[Cc]onfig:? \w+|Running with (?:args|configs?)):?\s*(?P<brace>\{)\s*$"
        ),
    ),
    (
        "",
        re.compile(
            r"(?:[Cc]onfig(?:s|uration|Container)?:?|[Cc]onfig:? \w+|Experiment configuration \*+)\s*$"
        ),
    ),
    ("padded", re.compile(r"Configuration Arguments\s*$")),
    ("repr", re.compile(r"\b\w*(?:Arguments|Args)\(\s*$")),
    ("yaml", re.compile(r"^(?:model|trainer|model_config):\s*$")),
)
"""The style of a dump and the line it begins with; "" shows by its first pair."""
PAIRS = {
    "json": re.compile(r"^\s*\"(\w+)\":\s*(.+?),?\s*$"),
    "yaml": re.compile(r"^\s*([\w/.-]+):(?:\s+(\S.*?))?\s*$"),
    "padded": re.compile(r"(?:^|\s)- (\w+)\s*: (\S.*?)\s*$"),
    "repr": re.compile(r"^\s*(\w+)=(.+?),?\s*$"),
}
PADDED_KEYS = {"max_seq_length": "seq_length"}
"""Names that mean more inside PaddleNLP's blocks than elsewhere: the length that every sequence has."""
ROLLOUT_ENGINE = re.compile(r"(?:tensor|pipeline|context|expert)_(?:model_)?parallel_size$")
"""In a configuration of reinforcement learning, sizes of the engine that generates."""
_DICT_PAIR = re.compile(r"'(\w+)': ('[^']*'|[\w.+-]+)(?=[,}\]])")
_LEAST_DICT_CHARACTERS = 120
_CAPTURED_BRACE = re.compile(r"[^\s:=,(]\s+\{\s*$")
_JSON_PART = re.compile(r"(?:\"[^\"]*\"(?::.*)?|[\[\]{}],?|[-\d.]+,?)\s*$")


def json_part(text: str) -> str:
    """What a line of a printed JSON document says, without what a tool put before it."""
    found = _JSON_PART.search(text)
    return (found[0] if found else text).strip()


def style_of(text: str) -> str:
    """The style of the first line of a dump; empty where it is no pair."""
    if text.lstrip().startswith("{") or _CAPTURED_BRACE.search(text):
        return "json"
    return "yaml" if PAIRS["yaml"].match(text) else ""


def dict_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Names and values of a printed Python dict of settings; none for a dict of metrics."""
    if not text.startswith("{'") or len(text) < _LEAST_DICT_CHARACTERS or "loss'" in text:
        return
    generates, sized = "'actor_rollout_ref'" in text, "'block_size'" in text
    for found in _DICT_PAIR.finditer(text):
        if sized and found[1] == "max_seq_length":
            yield "seq_length", found[2]
        elif not (generates and ROLLOUT_ENGINE.match(found[1])):
            yield found[1], found[2]
