"""Short forms for evidence: thresholds that hold only where the value is known, and the sign that tells of it."""

from flopwatch.answers.diagnosis import Sign, Unit


def at_least(value: float | None, level: float) -> bool:
    """Whether a value is known and reaches the level."""
    return value is not None and value >= level


def below(value: float | None, level: float) -> bool:
    """Whether a value is known and lies below the level."""
    return value is not None and value < level


def sign(code: str, value: float | None, reference: float | None = None, unit: Unit = "ratio") -> Sign:
    """A sign of a value."""
    return Sign(code=code, value=value, reference=reference, unit=unit)


def known(*signs: Sign) -> tuple[Sign, ...]:
    """Those whose value is known."""
    return tuple(each for each in signs if each.value is not None)


def missing(**values: object) -> tuple[str, ...]:
    """Names of the values that are not known."""
    return tuple(name for name, value in values.items() if value is None)
