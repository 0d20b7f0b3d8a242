"""What the agent takes from an SDK datagram, and what it does not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwatch.encoding import encode
from flopwatch.report import step_message
from flopwatch_agent.sdk_messages import MessageError, understood


def told(**message: Any):
    return understood(json.dumps(message).encode(), "slurm:7", "sdk:n:1:2")


def test_a_step_is_taken_with_the_kernels_job_and_source() -> None:
    step = told(
        event="step",
        step=5,
        end_time_seconds=100.0,
        seconds=2.0,
        steps_covered=4,
        tokens=80,
        rank=0,
        loss=1.5,
    ).step

    assert (step.job, step.source_id, step.source) == ("slurm:7", "sdk:n:1:2", "sdk")
    assert (step.step, step.steps_covered, step.seconds, step.tokens, step.loss) == (5, 4, 2.0, 80, 1.5)
    assert step.basis == "printed"


def test_a_step_without_a_duration_has_no_basis() -> None:
    step = told(event="step", step=5, end_time_seconds=100.0, seconds=None).step

    assert (step.seconds, step.basis) == (None, "none")


@pytest.mark.parametrize("loss", ["nan", "inf", "-inf", -3.5, 0])
def test_a_loss_may_be_any_number_in_words(loss: object) -> None:
    assert told(event="step", step=1, end_time_seconds=1.0, loss=loss).step.loss == loss


@pytest.mark.parametrize(
    "message",
    [
        {}, {"event": "other"}, {"event": ["step"]}, {"event": "step"}, {"event": "step", "step": 1},
        {"event": "step", "step": -1, "end_time_seconds": 1.0}, {"event": "step", "step": 1.5, "end_time_seconds": 1.0},
        {"event": "step", "step": True, "end_time_seconds": 1.0}, {"event": "step", "step": 1, "end_time_seconds": "x"},
        {"event": "step", "step": 1, "end_time_seconds": 1e300},
        {"event": "phase", "kind": "nap", "begin_seconds": 1.0},
        {"event": "phase", "kind": "eval"},
    ],
)  # fmt: skip
def test_a_message_without_what_it_needs_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(MessageError):
        told(**message)


def test_claims_of_identity_are_counted_and_ignored() -> None:
    message = told(event="step", step=1, end_time_seconds=1.0, job_id="slurm:1", uid=0, pid=1)

    assert message.claims == 3
    assert message.step.job == "slurm:7"


def test_unknown_and_wrong_values_are_left_out() -> None:
    run = told(event="run", world_size="8", dtype="b" * 500, tensor_parallel=4, secret="x", shape=[1]).run

    assert (run.world_size, run.dtype, run.tensor_parallel, run.shape) == (None, None, 4, None)
    assert "secret" not in encode(run).decode()


def test_a_target_outside_its_range_is_left_out() -> None:
    assert told(event="run", mfu_target_ratio=45).words.mfu_target_ratio is None
    assert told(event="run", mfu_target_ratio=0.45).words.mfu_target_ratio == 0.45


@given(st.binary(max_size=200))
def test_no_bytes_bring_it_down(body: bytes) -> None:
    try:
        understood(body, "job", "source")
    except (MessageError, ValueError):
        return


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda x: st.lists(x, max_size=3),
)


@given(
    st.sampled_from(["step", "run", "phase"]),
    st.dictionaries(
        st.sampled_from(
            [
                "step",
                "end_time_seconds",
                "seconds",
                "tokens",
                "loss",
                "kind",
                "begin_seconds",
                "shape",
                "dtype",
            ]
        ),
        JSON,
    ),
)
def test_what_is_understood_can_be_sent(event: str, values: dict[str, Any]) -> None:
    body = json.dumps({"event": event, **values}).encode()
    try:
        message = understood(body, "job", "source")
    except (MessageError, ValueError):
        return

    for part in (message.step, message.phase):
        assert part is None or encode(part)


@given(st.integers(0, 10**9), st.none() | st.floats(0, 1e6), st.none() | st.integers(0, 10**15))
def test_what_the_sdk_says_is_understood(step: int, seconds: float | None, tokens: int | None) -> None:
    message = understood(
        json.dumps(step_message(step, seconds, tokens, {"loss": float("nan")})).encode(), "j", "s"
    )

    assert (message.step.step, message.step.seconds, message.step.tokens) == (step, seconds, tokens)
    assert message.step.loss == "nan"
