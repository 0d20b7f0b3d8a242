"""Descriptions from other people's files: counted, or refused by field; never another error or a senseless count."""

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.flopwatch import hf_configs
from tests.unit.flopwatch.test_flops_megatron_args import DEEPSEEK_V3, HYBRID, LLAMA_3_8B

from flopwatch.blocks import ShapeError
from flopwatch.flops import ModelShape, StackTokens, flops_per_token
from flopwatch.model_names import DESCRIPTIONS

CONFIGS = [value for name, value in vars(hf_configs).items() if name.isupper()]
MEGATRON = [DEEPSEEK_V3, HYBRID, LLAMA_3_8B]
FLAT = [{"name": name, **description} for name, description in DESCRIPTIONS.items()]
GENERAL = [json.loads(json.dumps(ModelShape.from_hf_config(config).to_dict())) for config in CONFIGS]
STACKS = {name: StackTokens(per_token=0.1, length=64) for name in ("vision", "encoder")}
junk = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 300), st.floats(), st.text(max_size=5), st.just(10**12),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.sampled_from(["kind", "rank", "heads", "count", "model_type"]), st.integers(0, 3), max_size=2),
)  # fmt: skip


def places(value, path=()):
    """Every path inside nested JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(value, path, item):
    copy = json.loads(json.dumps(value))
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = item
    return copy


@st.composite
def spoiled(draw, sources):
    source = draw(st.sampled_from(sources))
    return changed(source, draw(st.sampled_from(list(places(source)))), draw(junk))


def counted_or_refused(make, description):
    try:
        shape = make(description)
        flops = flops_per_token(shape, 64, stacks=STACKS)
    except ShapeError:
        return
    assert math.isfinite(flops)
    assert flops > 0
    assert ModelShape.from_dict(json.loads(json.dumps(shape.to_dict()))) == shape


@settings(max_examples=200)
@given(spoiled(CONFIGS))
def test_a_spoiled_config_is_counted_or_refused(config):
    counted_or_refused(ModelShape.from_hf_config, config)


@settings(max_examples=200)
@given(spoiled(MEGATRON))
def test_spoiled_arguments_are_counted_or_refused(arguments):
    counted_or_refused(ModelShape.from_megatron_args, arguments)


@settings(max_examples=200)
@given(spoiled(FLAT))
def test_a_spoiled_flat_description_is_counted_or_refused(description):
    counted_or_refused(ModelShape.from_dict, description)


@settings(max_examples=200)
@given(spoiled(GENERAL))
def test_a_spoiled_written_shape_is_counted_or_refused(description):
    counted_or_refused(ModelShape.from_dict, description)


@given(st.dictionaries(st.text(max_size=10), junk, max_size=5))
def test_any_object_is_refused_by_field(description):
    for make in (ModelShape.from_dict, ModelShape.from_hf_config, ModelShape.from_megatron_args):
        counted_or_refused(make, description)
