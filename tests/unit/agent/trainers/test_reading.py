"""Unrelated text, bounds, the SDK's line, a user's format, event files, values of the wire."""

import importlib.util
import json
import struct
from pathlib import Path

import pytest

from flopwatch.flops import ModelShape
from flopwatch_agent.trainers import to_wire
from flopwatch_agent.trainers.clocks import elapsed_seconds, event_seconds, read_stamp
from flopwatch_agent.trainers.lines import MAX_LINE_BYTES
from flopwatch_agent.trainers.numbers import parse_number
from flopwatch_agent.trainers.reader import LogReader, parse_whole
from flopwatch_agent.trainers.userformat import user_format

FIXTURES = Path(__file__).parents[3] / "fixtures"


def unrelated(size: int, seed: int) -> bytes:
    spec = importlib.util.spec_from_file_location("unrelated_text", FIXTURES / "unrelated_text.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text: bytes = module.unrelated(size, seed=seed)
    return text


def test_unrelated_text_gives_no_rows() -> None:
    parsed = parse_whole(unrelated(600_000, seed=11))

    assert parsed.steps == ()
    assert parsed.family is None


def test_our_own_source_code_gives_no_rows() -> None:
    sources = b"\n".join(path.read_bytes() for path in sorted((FIXTURES.parents[1] / "agent").rglob("*.py")))

    assert parse_whole(sources).steps == ()


def test_unrelated_text_after_a_trainer_gives_no_rows() -> None:
    log = (FIXTURES / "trainer_logs" / "nanogpt.log").read_bytes()

    assert len(parse_whole(log + unrelated(200_000, seed=12)).steps) == 34


def test_a_line_of_ten_megabytes_is_cut_and_the_next_line_is_read() -> None:
    log = b"x" * (10 * MAX_LINE_BYTES) + b"\niter 0: loss 10.9, time 500.00ms, mfu 1.00%\n"

    assert [row.step for row in parse_whole(log).steps] == [0]


def test_binary_data_gives_nothing() -> None:
    noise = bytes((index * 167 + index // 251) % 256 for index in range(300_000))

    assert parse_whole(noise).steps == ()


def test_a_row_comes_out_with_the_bytes_that_complete_its_line() -> None:
    reader = LogReader()
    reader.feed(
        b"padding so that the file's kind is known, whatever it will be .....\n"
        b"iter 10: loss 2.5, time 250.00ms, mf",
        100.0,
    )
    before = reader.take()

    reader.feed(b"u 40.00%\n", 101.0)
    after = reader.take()

    assert before.steps == ()
    assert [(row.step, row.step_seconds, row.end_time_seconds) for row in after.steps] == [(10, 0.25, 101.0)]


def test_a_block_without_an_end_is_complete_when_nothing_follows_for_a_while() -> None:
    block = "[batch=10/100]:\n\t Train loss/train/total: 7.5\n\t Train throughput/batches_per_sec: 0.5\n"
    reader = LogReader(kind="stdout")
    reader.feed(block.encode(), 50.0)
    reader.feed(b"", 51.0)
    early = reader.take()

    reader.feed(b"", 53.0)

    assert early.steps == ()
    assert [row.step for row in reader.take().steps] == [10]


def test_the_sdks_line_gives_a_row_and_the_runs_facts() -> None:
    run = {
        "event": "run",
        "world_size": 8,
        "sequence_length": 2048,
        "dtype": "bf16",
        "shape": {"hidden": 64, "n_layers": 2},
    }
    step = {
        "event": "step",
        "step": 4,
        "steps_covered": 2,
        "seconds": 3.0,
        "tokens": 4096,
        "loss": "nan",
        "end_time_seconds": 9.5,
    }
    log = "".join(f"12:00:00 flopwatch: {json.dumps(document)}\n" for document in (run, step))
    parsed = parse_whole(log.encode())

    (row,) = parsed.steps
    assert (row.step, row.seconds, row.steps_covered, row.tokens, row.loss) == (4, 3.0, 2, 2048.0, "nan")
    assert row.end_time_seconds == 9.5
    assert (parsed.runs[0].world_size, parsed.runs[0].dtype, parsed.runs[0].shape) == (
        8,
        "bf16",
        {"hidden": 64, "n_layers": 2},
    )


def test_a_users_own_format_is_read_with_its_units() -> None:
    form = user_format(r"it=(?P<step>\d+) dt=(?P<seconds>[\d.]+) L=(?P<loss>[\d.]+)", {"seconds": "ms"})
    parsed = parse_whole(b"it=1 dt=900 L=3.5\nnothing here\nit=2 dt=450 L=3.25\n", user_format=form)

    assert [(row.step, row.step_seconds, row.loss) for row in parsed.steps] == [
        (1, 0.9, 3.5),
        (2, 0.45, 3.25),
    ]


@pytest.mark.parametrize(
    ("expression", "units", "message"),
    [
        ("(?P<step>", {}, "no regular expression"),
        (r"(?P<pace>\d+)", {}, "'pace'"),
        (r"(?P<seconds>\d+)", {}, "no group 'step'"),
        (r"(?P<step>\d+)", {"step": "fortnights"}, "fortnights"),
    ],
)
def test_a_wrong_format_says_what_is_wrong(expression: str, units: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        user_format(expression, units)


def test_an_unknown_kind_names_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match="allowed: auto, stdout"):
        LogReader(kind="xml")


def event(wall: float, step: int, tag: str, value: float) -> bytes:
    inner = b"\x0a" + bytes([len(tag)]) + tag.encode() + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(inner)]) + inner
    return framed(
        b"\x09"
        + struct.pack("<d", wall)
        + b"\x10"
        + bytes([step])
        + b"\x2a"
        + bytes([len(summary)])
        + summary
    )


def framed(record: bytes) -> bytes:
    return struct.pack("<Q", len(record)) + b"\0\0\0\0" + record + b"\0\0\0\0"


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_tensorboard_file_gives_steps_with_their_wall_time(size: int) -> None:
    head = framed(b"\x09" + struct.pack("<d", 1.0) + b"\x1a\x0dbrain.Event:2")
    data = head + b"".join(
        event(1000.0 + 2 * step, step, tag, value)
        for step in (1, 2, 3)
        for tag, value in (("lm loss", 8.0 / step), ("iteration-time", 1.5), ("lm loss vs samples", 9.0))
    )
    reader = LogReader()
    for place in range(0, len(data), size):
        reader.feed(data[place : place + size], None)
    reader.finish()

    rows = reader.everything().steps
    assert [(row.step, row.step_seconds, row.basis) for row in rows] == [
        (step, 1.5, "printed") for step in (1, 2, 3)
    ]
    assert [(row.loss, row.end_time_seconds) for row in rows[:2]] == [(8.0, 1002.0), (4.0, 1004.0)]


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("2024-05-03 11:02:05,211 - root - INFO - step", 1714734125.211),
        ("2023-11-10T15:06:10.621+08:00 INFO", 1699599970.621),
        ("01/17/2024 13:40:11 [INFO|DP=0]: iteration", 1705498811.0),
        ("[06/11/25 10:20:11] INFO", 1749637211.0),
        ("2024/05/07 12:31:29 - mmengine", 1715085089.0),
    ],
)
def test_times_of_log_lines_are_read(line: str, seconds: float) -> None:
    stamp = read_stamp(line)

    assert stamp is not None
    assert stamp.seconds == pytest.approx(seconds, abs=1e-3)


def test_a_time_of_day_that_goes_back_has_crossed_midnight() -> None:
    before, after = read_stamp("23:59:58 | step"), read_stamp("00:00:03 | step")

    assert before is not None
    assert after is not None
    assert elapsed_seconds(before, after) == 5.0


def test_a_local_time_is_placed_by_the_writers_zone_and_a_bare_one_by_its_arrival() -> None:
    dated, bare = read_stamp("2024-05-03 11:00:00 x"), read_stamp("11:00:00 x")

    assert event_seconds(dated, 5.0, 7_200.0) == 1714733999.0 + 1.0 - 7_200.0
    assert event_seconds(bare, 86_400.0 * 10 + 39_610.0, 0.0) == 86_400.0 * 10 + 39_600.0
    assert event_seconds(bare, None, 0.0) is None


def test_wire_records_carry_sums_and_no_overlap() -> None:
    log = (FIXTURES / "trainer_logs" / "olmo_v1.log").read_bytes()
    reader = LogReader()
    reader.feed(log, None)
    reader.finish()

    records = to_wire.steps(reader.take(), job="j", source_id="s")

    assert [record.steps_covered for record in records] == [10] * 7
    assert records[1].seconds == pytest.approx(10 / 0.2696)
    assert records[1].tokens == 10 * 1_048_576


def test_facts_of_a_header_without_steps_are_given() -> None:
    reader = LogReader()
    reader.feed(
        b"------------------------ arguments ------------------------\n"
        b"  hidden_size ..................................... 4096\n"
        b"  num_attention_heads ............................. 32\n"
        b"  num_layers ...................................... 32\n"
        b"  padded_vocab_size ............................... 50304\n"
        b"  swiglu .......................................... False\n"
        b"  world_size ...................................... 64\n",
        1.0,
    )

    (facts,) = reader.take().runs

    assert facts.world_size == 64
    assert ModelShape.from_dict(facts.shape or {}) == ModelShape.from_dict(
        {
            "hidden": 4096, "n_layers": 32, "ffn_hidden": 16384, "n_heads": 32, "n_kv_heads": 32, "head_dim": 128,
            "vocab": 50304, "padded_vocab_used": 50304, "gated_mlp": False, "tied_embeddings": True,
        }
    )  # fmt: skip


def argument_block(**arguments: object) -> bytes:
    lines = [f"  {name} {'.' * (48 - len(name))} {value}" for name, value in arguments.items()]
    head, tail = (
        "------------------------ arguments ------------------------",
        "-------- end of arguments --------",
    )
    return "\n".join([head, *lines, tail, ""]).encode()


BASE = {
    "hidden_size": 1024,
    "num_attention_heads": 8,
    "num_layers": 4,
    "padded_vocab_size": 50304,
    "swiglu": True,
}


def shape_of(log: bytes) -> ModelShape | None:
    reader = LogReader()
    reader.feed(log, 1.0)
    found = reader.take().runs[-1].shape
    return None if found is None else ModelShape.from_dict(found)


def test_a_hybrids_layers_are_read_from_the_printed_pattern() -> None:
    shape = shape_of(argument_block(**BASE, hybrid_override_pattern="M-*-", kv_channels=128))

    assert shape is not None
    assert shape.layers == 4
    assert shape.attention_layers == 1
    assert shape.hidden == 1024


def test_windows_latent_attention_and_prediction_depths_are_read_from_the_block() -> None:
    windowed = shape_of(argument_block(**BASE, window_size="(511, 0)", window_attn_skip_freq=2))
    latent = shape_of(argument_block(**BASE, multi_latent_attention=True, kv_lora_rank=512, mtp_num_layers=1))

    assert windowed is not None
    assert latent is not None
    windows = [block.mixer.mask.window for block in windowed.blocks for _ in range(block.count)]
    assert windows == [512, None, 512, None]
    assert {type(block.mixer).__name__ for block in latent.blocks} == {"LatentAttention"}
    assert latent.mtp_layers == 1


def test_layers_that_are_not_understood_give_no_shape_rather_than_a_wrong_one() -> None:
    assert shape_of(argument_block(**BASE, experimental_attention_variant="dsa")) is None


def test_the_vocabulary_may_be_printed_after_the_block() -> None:
    arguments = {name: value for name, value in BASE.items() if name != "padded_vocab_size"}
    log = argument_block(**arguments, padded_vocab_size=None, vocab_size=None)
    log += b" > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)\n"

    shape = shape_of(log)

    assert shape is not None
    assert (shape.vocab, shape.logits_rows) == (50257, 50304)


def test_a_printed_config_json_is_read_whole() -> None:
    document = {
        "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "hidden_size": 2304, "head_dim": 256,
        "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
        "vocab_size": 256000, "sliding_window": 4096, "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True,
    }  # fmt: skip
    log = "Model config Gemma2Config " + json.dumps(document, indent=2) + "\n"
    log += "".join(f"{{'loss': 2.5, 'grad_norm': 1.0, 'epoch': {epoch}}}\n" for epoch in (0.1, 0.2))

    assert shape_of(log.encode()) == ModelShape.from_hf_config(document)


@pytest.mark.parametrize(
    "path", sorted((FIXTURES / "trainer_logs").glob("*.log")), ids=lambda path: path.stem
)
def test_a_shape_that_is_sent_is_one_that_flops_can_be_counted_from(path: Path) -> None:
    shapes = [facts.shape for facts in parse_whole(path.read_bytes()).runs if facts.shape is not None]

    for shape in shapes:
        assert ModelShape.from_dict(shape).hidden == shape["hidden"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,277,012", 1_277_012.0), ("65,536,", 65_536.0), ("10,", 10.0), ("1,024.5", 1_024.5), ("3.42", 3.42),
        ("3,42", None), ("3,4211", None), ("135,20", None), ("1,2,3", None), ("1234,567", None),
    ],
)  # fmt: skip
def test_a_comma_is_read_between_groups_of_three_digits_only(text: str, value: float | None) -> None:
    assert parse_number(text) == value


def test_a_log_with_decimal_commas_has_unknown_figures_instead_of_wrong_ones() -> None:
    log = "".join(f"iter {step}: loss 3,4211, time 135,20ms, mfu 35,10%\n" for step in range(4))

    assert {(row.loss, row.step_seconds, row.mfu) for row in parse_whole(log.encode()).steps} == {
        (None, None, None)
    }


@pytest.mark.parametrize("end", ["E", "E+", "E-"])
def test_a_number_whose_exponent_was_cut_off_is_unknown(end: str) -> None:
    line = "iteration {}/ 100 | consumed samples: 128 | elapsed time per iteration (ms): 1000.0 | lm loss: 1.086515"
    log = f"{line.format(1)}E+01 |\n{line.format(2)}{end}"

    assert [row.loss for row in parse_whole(log.encode()).steps] == [10.86515, None]
