"""Configurations that trainers print over several lines: what of the run and the model is read from them."""

# ruff: noqa: E501, ISC004 - log lines are as long as they are

from typing import Any

import pytest

from flopwatch.wire import RunFacts
from flopwatch_agent.trainers.reader import parse_whole

TITAN = "step: 1  loss:  7.12  grad_norm:  1.2  memory: 40GiB(50%)  tps: 7,000  tflops: 405  mfu: 40.9%\n"
COMPOSER = "[batch=1/100]:\n\t Train time/batch: 0\n\t Train loss/train/total: 8.1\n"
OLMO = (
    "[step=1/739328]\n    train/CrossEntropyLoss=11.1\n    throughput/device/tokens_per_second=9,876\n"
    "    throughput/device/batches_per_second=0.25\n"
)
NEMO = "Training epoch 0, iteration 0/99 | lr: 3e-05 | global_step: 0 | reduced_train_loss: 10.1 | train_step_timing in s: 4.1\n"
LITGPT = "Epoch 1 | iter 4 step 1 | loss train: 10.123, val: n/a | iter time: 350.12 ms (step)\n"
PADDLE = (
    "- loss: 11.81, learning_rate: 3e-07, global_step: 1, interval_runtime: 4.5, progress_or_epoch: 0.0001\n"
)
VERL = "step:1 - actor/pg_loss:0.01 - timing_s/step:31.5\n"

DUMPS = {
    "llm-foundry": (
        "INFO: __main__: Building trainer...\nmax_seq_len: 2048\nmodel:\n  name: mpt_causal_lm\n  d_model: 2048\n"
        "  n_heads: 16\n  n_layers: 24\n  expansion_ratio: 4\n  max_seq_len: ${max_seq_len}\n  vocab_size: 50368\n"
        "  attn_config:\n    attn_impl: flash\nglobal_train_batch_size: 512\nprecision: amp_bf16\nn_gpus: 8\n" + COMPOSER,
        {"world_size": 8, "global_batch_size": 512, "dtype": "bf16"},
        {"hidden": 2048, "n_layers": 24, "n_heads": 16, "ffn_hidden": 8192, "vocab": 50368, "gated_mlp": False},
    ),
    "OLMo": (
        "node1:0\ttrain:100\tINFO\tConfiguration:\nrun_name: OLMo-7B\nmodel:\n  d_model: 4096\n  n_heads: 32\n"
        "  n_layers: 32\n  mlp_hidden_size: 22016\n  vocab_size: 50280\n  max_sequence_length: 2048\n"
        "  activation_type: swiglu\n  weight_tying: false\nglobal_train_batch_size: 2048\nprecision: amp_bf16\n\n"
        "node1:0\ttrain:100\tINFO\tTotal number of parameters: 6,888,095,744\n" + OLMO,
        {"global_batch_size": 2048, "sequence_length": 2048, "tokens_per_step": 4_194_304, "parameter_count": 6_888_095_744},
        {"hidden": 4096, "ffn_hidden": 11008, "gated_mlp": True, "tied_embeddings": False},
    ),
    "NeMo 1": (
        "    ************** Experiment configuration ***********\n[NeMo I 2024-05-01 10:00:00 megatron_gpt:35] \n"
        "    name: megatron_gpt\n    trainer:\n      devices: 8\n      num_nodes: 2\n      precision: bf16\n    model:\n"
        "      micro_batch_size: 2\n      global_batch_size: 128\n      tensor_model_parallel_size: 2\n"
        "      encoder_seq_length: 4096\n      num_layers: 32\n      hidden_size: 4096\n" + NEMO,
        {"world_size": 16, "global_batch_size": 128, "sequence_length": 4096, "tensor_parallel": 2, "dtype": "bf16"},
        None,
    ),
    "LitGPT": (
        "{'devices': 4,\n 'model_config': {'block_size': 2048,\n                  'intermediate_size': 5632,\n"
        "                  'mlp_class_name': 'LLaMAMLP',\n                  'n_embd': 2048,\n                  'n_head': 32,\n"
        "                  'n_layer': 22,\n                  'n_query_groups': 4,\n                  'vocab_size': 32000},\n"
        " 'num_nodes': 2,\n 'precision': 'bf16-mixed',\n 'train': {'global_batch_size': 512,\n"
        "           'max_seq_length': 1024,\n           'micro_batch_size': 4}}\nTotal parameters: 1,100,048,384\n" + LITGPT,
        {"world_size": 8, "global_batch_size": 512, "sequence_length": 1024, "parameter_count": 1_100_048_384},
        {"hidden": 2048, "n_layers": 22, "n_kv_heads": 4, "ffn_hidden": 5632, "gated_mlp": True},
    ),
    "PaddleNLP": (
        "[    INFO] -      Model Configuration Arguments      \n[    INFO] - hidden_size                   : 4096\n"
        "[    INFO] - max_seq_length                : 4096\n[    INFO] - per_device_train_batch_size   : 2\n"
        "[    INFO] - gradient_accumulation_steps   : 4\n[    INFO] - tensor_parallel_degree        : 2\n"
        "[    INFO] - world_size                    : 16\n" + PADDLE,
        {"world_size": 16, "global_batch_size": 64, "sequence_length": 4096, "tokens_per_step": 262_144},
        None,
    ),
    "veRL": (
        "(TaskRunner pid=1) {'actor_rollout_ref': {'actor': {'ppo_mini_batch_size': 256},\n"
        "(TaskRunner pid=1)                        'rollout': {'tensor_model_parallel_size': 2}},\n"
        "(TaskRunner pid=1)  'data': {'train_batch_size': 1024},\n(TaskRunner pid=1)  'trainer': {'n_gpus_per_node': 8,\n"
        "(TaskRunner pid=1)              'nnodes': 2}}\n(WorkerDict pid=2) Qwen2ForCausalLM contains 7.62B parameters\n"
        "(TaskRunner pid=1) " + VERL,
        {"world_size": 16, "global_batch_size": 1024, "tensor_parallel": None, "parameter_count": 7_620_000_000},
        None,
    ),
    "torchtitan": (
        'INFO - Running with args: {\n  "model": {\n    "name": "llama3",\n    "flavor": "8B"\n  },\n  "training": {\n'
        '    "global_batch_size": 512,\n    "seq_len": 8192\n  }\n}\nModel llama3 8B size: 8,030,261,248 total parameters\n' + TITAN,
        {"global_batch_size": 512, "sequence_length": 8192, "parameter_count": 8_030_261_248},
        {"hidden": 4096, "n_layers": 32, "vocab": 128256},
    ),
    "torchtitan, a family of unknown sizes": (
        'INFO - Running with args: {\n  "model": {\n    "flavor": "8B"\n  }\n}\nModel gpt_oss 8B size: 8,190,735,360 total parameters\n' + TITAN,
        {"parameter_count": 8_190_735_360},
        None,
    ),
    "Unsloth": (
        "==((====))==  Unsloth | Num GPUs used = 1\n   \\\\   /|    Num examples = 51,760 | Num Epochs = 1 | Total steps = 60\n"
        "O^O/ \\_/ \\    Batch size per device = 2 | Gradient accumulation steps = 4\n"
        "\\        /    Data Parallel GPUs = 1 | Total batch size (2 x 4 x 1) = 8\n"
        ' "-____-"     Trainable parameters = 41,943,040 of 8,072,204,288 (0.52% trained)\n'
        "{'loss': 1.1, 'grad_norm': 0.5, 'learning_rate': 5e-05, 'epoch': 0.1}\n",
        {"world_size": 1, "global_batch_size": 8, "parameter_count": 8_072_204_288},
        None,
    ),
    "Lightning's processes": (
        "All distributed processes registered. Starting with 16 processes\n" + NEMO, {"world_size": 16}, None,
    ),
    "parameters of one of several ranks": (
        " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 8030261248\n" + NEMO,
        {"parameter_count": None, "world_size": None},
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_tells_the_run_and_the_shape(name: str) -> None:
    text, of_run, of_shape = DUMPS[name]
    parsed = parse_whole(text.encode())
    run: RunFacts = parsed.runs[-1]
    shape: dict[str, Any] | None = dict(run.shape) if run.shape else None

    assert len(parsed.steps) == 1
    assert {key: getattr(run, key) for key in of_run} == of_run
    assert (shape and {key: shape.get(key) for key in of_shape or shape}) == (of_shape or shape)
    assert (shape is None) == (of_shape is None)


# parameters as the models' publishers state them, billions: total of the weights in matrices and embeddings
PUBLISHED = {
    ("qwen3", "0.6B"): 0.596, ("qwen3", "1.7B"): 1.72, ("qwen3", "4B"): 4.02, ("qwen3", "8B"): 8.19,
    ("qwen3", "14B"): 14.77, ("qwen3", "32B"): 32.76, ("qwen3", "30B-A3B"): 30.53, ("qwen3", "235B-A22B"): 235.09,
    ("deepseek_v3", "16B"): 15.71, ("deepseek_v3", "236B"): 235.74, ("deepseek_v3", "671B"): 671.03,
    # without the vision tower of 0.87
    ("llama4", "17bx16e"): 107.77, ("llama4", "17bx128e"): 400.71, ("llama4", "17bx16e_irope"): 107.77,
}  # fmt: skip


@pytest.mark.parametrize(("family", "flavor"), PUBLISHED)
def test_a_flavor_of_torchtitan_has_the_published_number_of_parameters(family: str, flavor: str) -> None:
    log = (
        f'INFO - Running with args: {{\n  "model": {{\n    "name": "{family}",\n    "flavor": "{flavor}"\n  }}\n}}\n'
        f"Model {family} {flavor} size: 1,000 total parameters\n{TITAN}"
    )
    shape = parse_whole(log.encode()).runs[-1].shape

    assert shape is not None
    assert parameters(shape) / 1e9 == pytest.approx(PUBLISHED[family, flavor], rel=0.005)


@pytest.mark.parametrize(("flavor", "chunked_layers"), [("17bx16e", 0), ("17bx128e_irope", 36)])
def test_llama_4s_attention_is_in_chunks_where_the_flavors_name_says_so(
    flavor: str, chunked_layers: int
) -> None:
    log = f"Building llama4 {flavor} with ModelArgs()\nModel llama4 {flavor} size: 1,000 total parameters\n{TITAN}"
    config = f'INFO - Running with args: {{\n  "model": {{\n    "name": "llama4",\n    "flavor": "{flavor}"\n  }}\n}}\n'
    shape = parse_whole((config + log).encode()).runs[-1].shape

    assert shape is not None
    blocks = shape["blocks"]
    assert sum(block["count"] for block in blocks) == 48
    assert sum(b["count"] for b in blocks if b["mixer"]["mask"].get("chunk") == 8192) == chunked_layers


HF = "{'loss': 1.2, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
PARTLY = {
    "PEFT": ("trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622\n" + HF, 6_742_609_920, 4_194_304),
    "PEFT, then the trainer": (
        "trainable params: 20,971,520 || all params: 8,051,232,768 || trainable%: 0.2605\n***** Running training *****\n"
        "  Num examples = 1,000\n  Number of trainable parameters = 20,971,520\n" + HF, 8_051_232_768, 20_971_520,
    ),
    "LLaMA-Factory": (
        "[INFO|2025-03-01 10:00:00] llamafactory.model.loader:143 >> trainable params: 20,971,520 || all params: 8,051,232,768"
        " || trainable%: 0.2605\n" + HF, 8_051_232_768, 20_971_520,
    ),
    "ms-swift": (
        "[INFO:swift] model_parameter_info: PeftModelForCausalLM: 7630.3898M Params (14.8193M Trainable [0.1942%]), 0.0001M"
        " Buffers.\n" + HF, 7_630_389_800, 14_819_300,
    ),
    "LitGPT": (
        "Number of trainable parameters: 3,145,728\nNumber of non-trainable parameters: 7,000,000,000\n" + LITGPT,
        7_003_145_728, 3_145_728,
    ),
    "Automodel": (
        "2026-08-10 15:40:02 | INFO | root | Trainable parameters: 5,000,000\n2026-08-10 15:40:02 | INFO | root | "
        "Total parameters: 8,030,261,248\n" + HF, 8_030_261_248, 5_000_000,
    ),
    "a whole model": ("***** Running training *****\n  Number of trainable parameters = 1,000,000\n" + HF, 1_000_000, 1_000_000),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTLY)
def test_trained_parameters_are_told_from_all(name: str) -> None:
    text, whole, trained = PARTLY[name]

    run = parse_whole(text.encode()).runs[-1]

    assert (run.parameter_count, run.trained_parameter_count) == (whole, trained)


def parameters(shape: dict[str, Any]) -> int:
    hidden = shape["hidden"]
    total = hidden * shape["vocab"] * (1 if shape["tied_embeddings"] else 2)
    for block in shape["blocks"]:
        mixer, mlp = block["mixer"], block["mlp"]
        if mixer["kind"] == "attention":
            heads = 2 * mixer["heads"] + 2 * mixer["kv_heads"]
            attention = hidden * mixer["head_dim"] * heads
        else:
            per_head = mixer["nope"] + mixer["rope"]
            queries = mixer.get("q_lora") or 0
            attention = (queries or hidden) * mixer["heads"] * per_head + hidden * queries
            attention += hidden * (mixer["kv_lora"] + mixer["rope"]) + mixer["heads"] * mixer["v"] * hidden
            attention += mixer["kv_lora"] * mixer["heads"] * (mixer["nope"] + mixer["v"])
        if mlp["kind"] == "dense_mlp":
            width = mlp["ffn"]
        else:
            width = mlp["n_experts"] * mlp["expert_ffn"] + mlp["shared_expert_ffn"]
        total += block["count"] * (attention + 3 * hidden * width)
    return int(total)


def test_a_world_size_that_several_counts_fit_is_not_guessed() -> None:
    block = (
        "[step={0}/739328]\n    train/CrossEntropyLoss=11.1\n    throughput/total_tokens={1}\n"
        "    throughput/device/tokens_per_second=10,000\n    throughput/device/batches_per_second=0.5\n"
    )
    tokens = 347 * 20_000
    parsed = parse_whole("".join(block.format(n, n * tokens) for n in (1, 2, 3)).encode())

    assert parsed.steps[-1].tokens == tokens
    assert parsed.runs[-1].world_size is None
