"""Documents of the control state as they are compared: by what they mean, not by their bytes."""

from typing import Any

import msgspec


def is_still(body: bytes | None, expected: Any | None) -> bool:
    """Whether a kept document is the expected one (None: whether there is none).

    One of an earlier version lacks fields that have defaults since: it is the same all the same.
    """
    if body is None or expected is None:
        return body is None and expected is None
    try:
        return bool(msgspec.json.decode(body, type=type(expected)) == expected)
    except msgspec.DecodeError:
        return False
