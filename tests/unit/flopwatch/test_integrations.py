"""What the callbacks share: steps, pauses and facts as a loop's events tell them, and nothing raised into it."""

import json
import socket
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from flopwatch.integrations.model_facts import model_facts, number_format, unwrapped
from flopwatch.integrations.progress import Progress

LLAMA = {
    "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}  # fmt: skip


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Parameter:
    def __init__(self, count: int) -> None:
        self._count = count

    def numel(self) -> int:
        return self._count


class FlatParameter(Parameter):
    """As FSDP names the part of a rank."""


class Model:
    def __init__(self, *parameters: Parameter, config: dict | None = None, **more: object) -> None:
        self._parameters = parameters
        self.config = SimpleNamespace(to_dict=lambda: config) if config else None
        self.__dict__.update(more)

    def parameters(self):
        return iter(self._parameters)


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(str(tmp_path / "s.sock"))
    monkeypatch.setenv("FLOPWATCH_SOCKET", str(tmp_path / "s.sock"))
    monkeypatch.delenv("RANK", raising=False)
    yield made
    made.close()


@pytest.fixture
def new(listener):
    made = []

    def progress(facts: dict[str, object] | None = None, clock: Clock | None = None) -> Progress:
        made.append(Progress(facts or {}, clock=clock or Clock()))
        return made[-1]

    yield progress
    for item in made:
        item.end()


def received(listener: socket.socket) -> list[dict]:
    listener.setblocking(False)
    found = []
    while True:
        try:
            found.append(json.loads(listener.recv(65536)))
        except BlockingIOError:
            return found


def test_the_first_step_is_timed_from_its_data_and_not_steady(listener, new) -> None:
    clock = Clock()
    progress = new(clock=clock)
    progress.begin(rank=0, step=0, facts=dict)

    clock.now += 7.0
    progress.step_begins()
    clock.now += 2.0
    progress.step_done(1, tokens=64)

    _, step = received(listener)
    assert (step["step"], step["tokens"], step["seconds"], step["steady"]) == (1, 64, 2.0, False)
    assert step["data_wait_seconds"] == 7.0


def test_a_pause_goes_from_the_last_mark_to_its_end(listener, new) -> None:
    clock = Clock()
    progress = new(clock=clock)
    progress.begin(rank=0, step=0, facts=dict)
    progress.step_done(1)

    clock.now += 1.0
    progress.mark()
    clock.now += 4.0
    progress.paused("eval")
    clock.now += 3.0
    progress.paused("checkpoint")

    found = [message for message in received(listener) if message["event"] == "phase"]
    assert [(item["kind"], item["step"]) for item in found] == [("eval", 1), ("checkpoint", 1)]
    lengths = [item["end_seconds"] - item["begin_seconds"] for item in found]
    assert lengths == pytest.approx([4.0, 3.0], abs=0.05)


def test_a_step_that_was_told_is_not_told_again_and_a_jump_covers_its_steps(listener, new) -> None:
    progress = new()
    progress.begin(rank=0, step=10, facts=dict)
    for step in (10, 11, 11, 13):
        progress.step_done(step)

    run, *steps = received(listener)
    assert run["resumed_from_step"] == 10
    assert [(item["step"], item["steps_covered"]) for item in steps] == [(11, 1), (13, 2)]


def test_what_the_user_states_wins_over_what_the_library_knows(listener, new) -> None:
    progress = new({"sequence_length": 4096, "kind": "pretrain"})
    progress.begin(rank=0, step=0, facts=lambda: {"sequence_length": 64, "world_size": 8})

    (run,) = received(listener)
    assert (run["sequence_length"], run["world_size"], run["kind"]) == (4096, 8, "pretrain")


def test_other_ranks_are_silent_and_are_not_asked_for_facts(listener) -> None:
    asked = []
    progress = Progress({})
    progress.begin(rank=3, step=0, facts=lambda: asked.append(1) or {})
    progress.step_done(1)
    progress.paused("eval")

    assert (asked, received(listener)) == ([], [])


def test_errors_are_dropped_and_counted_and_the_first_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress({})
    for number in range(3):
        with progress:
            raise AttributeError(f"no\nlogs {number}")

    lines = capsys.readouterr().err.splitlines()
    assert progress.errors == 3
    assert lines == [
        "flopwatch callback: an error was dropped, training goes on: AttributeError: no logs 0",
    ]


def test_an_interrupt_is_not_ours_to_drop() -> None:
    progress = Progress({})

    with pytest.raises(KeyboardInterrupt), progress:
        raise KeyboardInterrupt
    assert progress.errors == 0


def test_a_closed_standard_error_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress({})
    monkeypatch.setattr(sys, "stderr", None)

    with progress:
        raise ValueError
    assert progress.errors == 1


def test_a_model_with_a_known_configuration_tells_its_shape() -> None:
    facts = model_facts(Model(config=LLAMA))

    assert list(facts) == ["shape"]
    assert facts["shape"]["hidden"] == 32


def test_a_model_without_one_tells_its_parameters() -> None:
    assert model_facts(Model(Parameter(10), Parameter(32))) == {"parameter_count": 42}


@pytest.mark.parametrize("config", [{"model_type": "no such"}, {"model_type": "llama"}, {"hidden": 1}])
def test_a_configuration_that_is_not_understood_leaves_the_parameters(config: dict) -> None:
    assert model_facts(Model(Parameter(10), config=config)) == {"parameter_count": 10}


def test_flat_parts_of_a_rank_are_not_counted_as_the_model() -> None:
    assert model_facts(Model(Parameter(10), FlatParameter(32))) == {"parameter_count": None}


def test_zero_3_keeps_the_full_size_of_a_parameter_that_is_elsewhere() -> None:
    parted = Parameter(0)
    parted.ds_numel = 64

    assert model_facts(Model(Parameter(10), parted)) == {"parameter_count": 74}


def test_wrappers_are_looked_through() -> None:
    inner = Model(config=LLAMA)

    assert unwrapped(SimpleNamespace(module=SimpleNamespace(_orig_mod=inner))) is inner


@pytest.mark.parametrize(
    ("targets", "roles"),
    [({"q_proj", "v_proj"}, ["q", "v"]), ({"q_proj", "lm_head"}, []), ("all-linear", [])],
)
def test_lora_is_a_frozen_shape_with_adapters(targets: object, roles: list[str]) -> None:
    adapter = SimpleNamespace(r=8, target_modules=targets)

    facts = model_facts(Model(Parameter(10), config=LLAMA, peft_config={"default": adapter}))

    assert facts["shape"]["lora"] == {"rank": 8, "roles": roles}


def test_other_adapters_leave_shape_and_parameters_unknown() -> None:
    adapter = SimpleNamespace(num_virtual_tokens=8)

    assert model_facts(Model(Parameter(10), config=LLAMA, peft_config={"default": adapter})) == {}


@pytest.mark.parametrize(
    ("word", "dtype"),
    [
        ("torch.bfloat16", "bf16"),
        ("bf16-mixed", "bf16"),
        ("fp16", "fp16"),
        ("torch.uint8", None),
        (None, None),
    ],
)
def test_number_formats_are_flopwatch_s_words(word: object, dtype: str | None) -> None:
    assert number_format(word) == dtype


@pytest.mark.parametrize(("setting", "dtype"), [("highest", "fp32"), ("high", "tf32"), ("medium", "tf32")])
def test_32_bits_are_tf32_where_pytorch_may_use_it(
    monkeypatch: pytest.MonkeyPatch, setting: str, dtype: str
) -> None:
    torch = ModuleType("torch")
    torch.get_float32_matmul_precision = lambda: setting
    monkeypatch.setitem(sys.modules, "torch", torch)

    assert number_format("torch.float32") == dtype


def test_importing_the_package_of_callbacks_imports_no_training_library() -> None:
    import flopwatch.integrations  # noqa: F401

    assert not {"transformers", "lightning", "composer"} & set(sys.modules)
