"""Bytes of a push → ``wire.Batch``: bounded decompression, strict types, errors that name the field."""

import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from flopwatch.wire import WIRE_VERSION, Batch
from flopwatch_collector.ingest import quick
from flopwatch_collector.ingest.quick import LARGEST_INTEGER, LATEST_TIME_SECONDS

SHOWN_CHARACTERS = 80

_DECODER = msgspec.json.Decoder(Batch, strict=True)
_WHERE = re.compile(r"(?P<text>.*) - at `\$\.?(?P<path>.*)`", re.DOTALL)
_OWN = re.compile(r"(?P<field>[a-z_.]+) (?:is|has) (?P<value>.*); allowed: (?P<allowed>.*)", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<field>\w+)`")
_EXPECTED = re.compile(r"Expected `(?P<allowed>[^`]+)`, got `(?P<value>[^`]+)`")


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldError:
    """What is wrong with one field of a push."""

    field: str
    value: str
    """Shortened; for a wrong type only the type."""
    allowed: str


class MalformedBatch(ValueError):
    """The body is no batch of this version; ``errors`` says why, field by field."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(f"{e.field} is {e.value}; allowed: {e.allowed}" for e in errors))
        self.errors = errors


class BodyTooLarge(Exception):
    """The body has more than ``limit_bytes`` after decompression."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"the body is larger than {limit_bytes} bytes after decompression")
        self.limit_bytes = limit_bytes


class UnknownEncoding(Exception):
    """The body's content encoding is neither gzip nor identity."""


def read_batch(body: bytes, content_encoding: str, max_body_bytes: int) -> Batch:
    """The batch in the body of a push, by attributes the same as the wire's, checked.

    Raises:
        BodyTooLarge: more than ``max_body_bytes`` after decompression.
        UnknownEncoding: an encoding other than ``gzip`` and ``identity``.
        MalformedBatch: not a batch of this version.
    """
    plain = plain_bytes(body, content_encoding, max_body_bytes)
    try:
        batch = quick.read(plain)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _explained(plain)
    _check_rare(batch)
    return batch


def _explained(plain: bytes) -> Batch:
    """What the wire's own classes say of a body that was refused.

    Raises:
        MalformedBatch: what is wrong, with its field.
    """
    return decode(plain)


def plain_bytes(body: bytes, content_encoding: str, max_body_bytes: int) -> bytes:
    """The body without its encoding; never more than ``max_body_bytes`` are made in memory."""
    encoding = content_encoding.strip().lower()
    if encoding in ("", "identity"):
        if len(body) > max_body_bytes:
            raise BodyTooLarge(max_body_bytes)
        return body
    if encoding != "gzip":
        raise UnknownEncoding(f"content-encoding is {shown(encoding)}; allowed: gzip, identity")
    try:
        return b"".join(_gunzip(body, max_body_bytes))
    except zlib.error as error:
        raise MalformedBatch(_body_error("bytes that are not gzip", "a gzip stream")) from error


def _gunzip(body: bytes, max_body_bytes: int) -> Iterator[bytes]:
    """The members of a gzip stream, one after another."""
    left = max_body_bytes
    while body:
        member = zlib.decompressobj(wbits=31)
        part = member.decompress(body, left + 1)
        left -= len(part)
        if left < 0:
            raise BodyTooLarge(max_body_bytes)
        if not member.eof:
            raise zlib.error("truncated")
        yield part
        body = member.unused_data


def decode(body: bytes) -> Batch:
    """The batch in plain JSON; keys it does not know are ignored.

    Raises:
        MalformedBatch: not JSON, a wrong type, a missing field, a value out of range, another version.
    """
    try:
        batch = _DECODER.decode(body)
    except msgspec.ValidationError as error:
        raise MalformedBatch(_other_version(body) or _field_error(str(error), body)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedBatch(_body_error(f"not JSON ({error})", "a batch as JSON in UTF-8")) from error
    except RecursionError as error:
        raise MalformedBatch(_body_error("nested too deeply", "a batch as JSON")) from error
    check(batch)
    return batch


def check(batch: Batch) -> None:
    """Refuse numbers that mean nothing: times beyond the year 3000, integers beyond 62 bits, shares beyond 1.

    Raises:
        MalformedBatch: such a number, with its field.
    """
    _check_rows(batch)
    _check_rare(batch)


def _check_rows(batch: Batch) -> None:
    """The rows of hardware."""
    for field in ("gpu_samples", "node_samples", "port_samples", "job_samples"):
        for row in getattr(batch, field):
            _check_time(f"{field}.time_seconds", row.time_seconds)
            for name in row.__slots__:
                value = getattr(row, name)
                if isinstance(value, (int, float)) and abs(value) > LARGEST_INTEGER:
                    raise MalformedBatch(
                        FieldError(
                            field=f"{field}.{name}", value="a number beyond 2**62", allowed="at most 2**62"
                        )
                    )


def _check_time(field: str, seconds: float) -> None:
    if not 0.0 <= seconds <= LATEST_TIME_SECONDS:
        allowed = "epoch seconds from 1970 to 3000"
        raise MalformedBatch(FieldError(field=field, value=f"{seconds!r}", allowed=allowed))


def _check_rare(batch: Batch) -> None:
    """All but the rows of hardware."""
    for field, seconds in _times(batch):
        _check_time(field, seconds)
    for lease in batch.leases:
        if not 0.0 < lease.share_ratio <= 1.0:
            share = f"{lease.share_ratio!r}"
            raise MalformedBatch(
                FieldError(field="leases.share_ratio", value=share, allowed="above 0, at most 1")
            )
    for field, value in _integers(batch):
        if abs(value) > LARGEST_INTEGER:
            raise MalformedBatch(
                FieldError(field=field, value="an integer beyond 62 bits", allowed="at most 2**62")
            )


def _times(batch: Batch) -> Iterator[tuple[str, float]]:
    yield "sampled_at_seconds", batch.sampled_at_seconds
    for field, names in _SPANS.items():
        for row in getattr(batch, field):
            for name in names:
                if (value := getattr(row, name)) is not None:
                    yield f"{field}.{name}", value


_SPANS = {
    "jobs": ("submit_time_seconds", "start_time_seconds", "end_time_seconds"),
    "steps": ("end_time_seconds",),
    "phases": ("begin_seconds", "end_seconds"),
    "sessions": ("begin_seconds", "end_seconds"),
    "leases": ("start_seconds", "end_seconds"),
    "events": ("time_seconds",),
}


def _integers(batch: Batch) -> Iterator[tuple[str, int]]:
    yield "sequence", batch.sequence
    for field, names in _INTEGERS.items():
        for row in getattr(batch, field) or ():
            for name in names:
                if (value := getattr(row, name)) is not None:
                    yield f"{field}.{name}", value
    yield from _run_integers(batch)


def _run_integers(batch: Batch) -> Iterator[tuple[str, int]]:
    for job in batch.jobs:
        yield from ((f"jobs.{name}", value) for name, value in _whole(job, ("uid", "world_size")))
        yield from (("jobs.ranks", rank) for rank in job.ranks)
        for run in job.run:
            yield from ((f"jobs.run.{name}", value) for name, value in _whole(run, run.__slots__))


def _whole(row: object, names: Iterable[str]) -> Iterator[tuple[str, int]]:
    for name in names:
        value = getattr(row, name)
        if isinstance(value, int):
            yield name, value


_INTEGERS = {
    "gpus": ("index", "memory_total_bytes", "sm_count"),
    "steps": ("step", "steps_covered", "rank", "session", "tokens", "padded_tokens", "skipped_steps"),
    "phases": ("session", "step"),
    "sessions": ("session", "restart_number", "resumed_from_step"),
    "events": ("code",),
}


def _other_version(body: bytes) -> FieldError | None:
    """The error that says it all when the batch is of another version of the wire."""
    top = _untyped(body)
    version = top.get("version") if isinstance(top, dict) else None
    if version is None or version == WIRE_VERSION:
        return None
    return FieldError(
        field="version",
        value=shown(version),
        allowed=f"{WIRE_VERSION}: update the older of agent and collector",
    )


def _field_error(message: str, body: bytes) -> FieldError:
    """A message of msgspec, or a wire class's own, as field, value and what is allowed."""
    where = _WHERE.fullmatch(message)
    text, path = (where["text"], where["path"]) if where else (message, "")
    if own := _OWN.fullmatch(text):
        field = f"{path}.{own['field'].rpartition('.')[2]}" if path else own["field"]
        return FieldError(field=field, value=shorten(own["value"]), allowed=own["allowed"])
    if missing := _MISSING.fullmatch(text):
        field = f"{path}.{missing['field']}" if path else missing["field"]
        return FieldError(field=field, value="missing", allowed="a value: the field is required")
    if expected := _EXPECTED.fullmatch(text):
        return FieldError(field=path or "body", value=expected["value"], allowed=expected["allowed"])
    return FieldError(field=path or "body", value=shown(_at(path, body)), allowed=_allowed(text))


def _allowed(text: str) -> str:
    """What msgspec's rarer messages mean for the sender."""
    if text.startswith("Invalid enum value"):
        return "one of the values that the wire names for this field"
    return f"a valid value ({shorten(text)})"


def _at(path: str, body: bytes) -> object:
    """The value at msgspec's path (``steps[0].source``), or the words for it when it cannot be told."""
    value = _untyped(body)
    for key, index in re.findall(r"([A-Za-z_]\w*)|\[(\d+)\]", path):
        try:
            value = value[key] if key else value[int(index)]
        except (KeyError, IndexError, TypeError):
            return "another value"
    return value


def _untyped(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _body_error(value: str, allowed: str) -> FieldError:
    return FieldError(field="body", value=value, allowed=allowed)


def shown(value: object) -> str:
    """A value for an error message: its short text, or only its kind where it is a table or a list."""
    if isinstance(value, (dict, list, bytes)):
        return {dict: "an object", list: "an array", bytes: "bytes"}[type(value)]
    return shorten(repr(value))


def shorten(text: str) -> str:
    """At most 80 characters, all printable."""
    plain = "".join(character if character.isprintable() else "?" for character in text)
    return plain if len(plain) <= SHOWN_CHARACTERS else plain[: SHOWN_CHARACTERS - 1] + "…"
