import gzip
import json

import pytest
from tests.integration.collector.batches import NOW, batch, sample, slurm, step

from flopwatch import wire
from flopwatch.encoding import encode
from flopwatch_collector.ingest.decode import (
    BodyTooLarge,
    MalformedBatch,
    UnknownEncoding,
    decode,
    read_batch,
)

PLAIN = {
    "version": 1,
    "node": "n",
    "cluster": "c",
    "spool": "s",
    "sequence": 0,
    "boot_id": "b",
    "sampled_at_seconds": NOW,
    "monotonic_seconds": 1.0,
    "interval_seconds": 10.0,
    "agent_version": "1",
}

LEASE = {"lease_id": "1", "job": "j", "gpus": [], "source": "prolog", "start_seconds": NOW}


def body(**changes: object) -> bytes:
    return json.dumps({**PLAIN, **changes}).encode()


def problem(raw: bytes) -> tuple[str, str, str]:
    with pytest.raises(MalformedBatch) as caught:
        decode(raw)
    error = caught.value.errors[0]
    return error.field, error.value, error.allowed


def test_what_the_wire_encodes_is_decoded_to_the_same_value() -> None:
    sent = batch(
        gpu_samples=(sample("GPU-1", kernel_active_ratio=0.5, job="slurm:77"),),
        jobs=(slurm(run=(wire.RunFacts(source="log", origin="args", shape={"layers": 2}),)),),
        steps=(step(3, job="slurm:77", loss="inf"), step(4, job="slurm:77", loss=2.5)),
    )

    assert decode(encode(sent)) == sent


def test_keys_of_a_newer_agent_are_ignored() -> None:
    assert decode(body(colour="red", gpu_samples=[{"gpu": "g", "time_seconds": 1, "new": 2}])).node == "n"


def test_another_version_is_refused_by_name_even_when_other_fields_are_unknown_to_us() -> None:
    assert problem(body(version=2, sequence={"a": 1})) == (
        "version",
        "2",
        "1: update the older of agent and collector",
    )


@pytest.mark.parametrize(
    ("raw", "field", "value", "allowed"),
    [
        (body(sequence="7"), "sequence", "str", "int"),
        (body(node=None), "node", "null", "str"),
        (body(sequence=-1), "sequence", "-1", "0 or more"),
        (body(node="x" * 254), "node", "254 characters", "1 to 253"),
        (body(interval_seconds=0), "interval_seconds", "0.0", "above 0, at most 86400"),
        (
            body(gpu_samples=[{"gpu": "g", "time_seconds": 1, "sm_active_ratio": 1.5}]),
            "gpu_samples[0].sm_active_ratio",
            "1.5",
            "0 to 1, or absent",
        ),
        (body(steps=[{"job": "j"}]), "steps[0].source", "missing", "a value: the field is required"),
        (
            body(jobs=[{"ref": "r", "scheduler": "cron"}]),
            "jobs[0].scheduler",
            "'cron'",
            "one of the values that the wire names for this field",
        ),
        (
            body(sampled_at_seconds=1e12),
            "sampled_at_seconds",
            "1000000000000.0",
            "epoch seconds from 1970 to 3000",
        ),
        (body(sequence=2**63), "sequence", "an integer beyond 62 bits", "at most 2**62"),
        (
            body(leases=[{**LEASE, "share_ratio": 50}]),
            "leases.share_ratio",
            "50.0",
            "above 0, at most 1",
        ),
        (b"[]", "body", "array", "object"),
    ],
)
def test_a_wrong_field_is_named_with_its_value_and_what_is_allowed(
    raw: bytes, field: str, value: str, allowed: str
) -> None:
    assert problem(raw) == (field, value, allowed)


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe\x00", b'{"node": "\xff"}', b"[" * 100_000])
def test_what_is_not_json_is_refused_without_echoing_it(raw: bytes) -> None:
    field, value, _ = problem(raw)

    assert field == "body"
    assert len(value) < 120
    assert value.isprintable()


def test_a_long_value_is_shortened_in_the_message() -> None:
    field, value, _ = problem(body(jobs=[{"ref": "r", "scheduler": "s" * 5_000}]))

    assert field == "jobs[0].scheduler"
    assert len(value) == 80


def test_gzip_of_several_members_is_one_body() -> None:
    raw = body()

    assert read_batch(gzip.compress(raw[:40]) + gzip.compress(raw[40:]), "gzip", 10_000).node == "n"


def test_a_zip_bomb_is_stopped_at_the_limit() -> None:
    bomb = gzip.compress(b" " * 50_000_000)

    with pytest.raises(BodyTooLarge):
        read_batch(bomb, "gzip", 1_000_000)


def test_the_limit_itself_is_allowed_and_one_byte_more_is_not() -> None:
    raw = body()

    assert read_batch(gzip.compress(raw), "gzip", len(raw)).node == "n"
    with pytest.raises(BodyTooLarge):
        read_batch(gzip.compress(raw), "gzip", len(raw) - 1)
    with pytest.raises(BodyTooLarge):
        read_batch(raw, "", len(raw) - 1)


def test_truncated_gzip_is_malformed() -> None:
    with pytest.raises(MalformedBatch, match="gzip"):
        read_batch(gzip.compress(body())[:-5], "gzip", 10_000)


def test_an_encoding_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnknownEncoding, match="'br'; allowed: gzip, identity"):
        read_batch(body(), "br", 10_000)
