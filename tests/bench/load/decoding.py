"""How long one core takes to decode a batch's JSON into the wire's values, by library."""

import dataclasses
import gzip
import importlib.util
import json
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pydantic
from tests.bench.load.fleet import Fleet, Options

from flopwatch.wire import Batch
from flopwatch_collector.ingest import decode, quick

NODES = 128
ROUNDS = 3


def table() -> dict[str, float]:
    """Microseconds of CPU a batch of eight GPUs, the best of three rounds."""
    options = Options(gpus=NODES * 8, start_seconds=1.7e9)
    fleet = Fleet(options).batches()
    bodies = [made.body for made, _ in zip(fleet, range(5 * NODES), strict=False)][NODES:]
    packed = [gzip.compress(body, 6) for body in bodies]
    wire_classes = msgspec.json.Decoder(Batch, strict=True)
    adapter = pydantic.TypeAdapter(Batch)
    ways: dict[str, Callable[[bytes], Any]] = {
        "msgspec, rows as structs, ranges checked in C (what ingest does)": quick.read,
        "msgspec, the wire's dataclasses": wire_classes.decode,
        "the same and every check of the slow way": decode.decode,
        "pydantic, the wire's dataclasses": adapter.validate_json,
        "json of the standard library, no types": json.loads,
        "msgspec, no types": msgspec.json.decode,
    }
    if importlib.util.find_spec("orjson"):
        import orjson

        ways["orjson, no types"] = orjson.loads
    measured = {name: _microseconds(way, bodies) for name, way in ways.items()}
    measured["gunzip alone"] = _microseconds(lambda body: decode.plain_bytes(body, "gzip", 1 << 24), packed)
    measured["(bytes of JSON, gzipped)"] = sum(map(len, packed)) / len(packed)
    measured["(bytes of JSON)"] = sum(map(len, bodies)) / len(bodies)
    return measured


def _microseconds(way: Callable[[bytes], Any], bodies: list[bytes]) -> float:
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for body in bodies:
            way(body)
        taken.append(time.process_time() - began)
    return min(taken) / len(bodies) * 1e6


def fields_agree() -> bool:
    """Whether the quick way reads what the wire's classes read, field by field."""
    body = next(Fleet(Options(gpus=8, start_seconds=1.7e9)).batches()).body
    mine, theirs = quick.read(body), msgspec.json.decode(body, type=Batch)
    names = [field.name for field in dataclasses.fields(type(theirs.gpu_samples[0]))]
    rows = zip(mine.gpu_samples, theirs.gpu_samples, strict=True)
    return all(getattr(a, name) == getattr(b, name) for a, b in rows for name in names)
