"""Where trainers print shape, batch, precision and parallel sizes: tables of names and lines.

Facts have these names: ``world_size``, ``data_parallel``, ``tensor_parallel``, ``pipeline_parallel``,
``context_parallel``, ``expert_parallel``, ``micro_batch_size``, ``global_batch_size``,
``gradient_accumulation_steps``, ``pipeline_chunks``, ``pipeline_microbatches``,
``seq_length``, ``tokens_per_step``, ``total_steps``, ``log_interval``,
``num_params``, ``flops_per_token``, ``peak_flops``, ``device_name``, ``precision`` and, for the model, the names of
``flopwatch.flops.ModelShape.from_dict``.
"""

import re

from flopwatch_agent.trainers.literals import literals_of
from flopwatch_agent.trainers.numbers import NUMBER

CONFIG_KEYS = {
    # model
    "hidden_size": "hidden", "n_embd": "hidden", "dim": "hidden", "base_emb_dim": "hidden", "d_model": "hidden",
    "emb_dim": "hidden",
    "num_layers": "n_layers", "num_hidden_layers": "n_layers", "n_layers": "n_layers", "n_layer": "n_layers",
    "base_num_decoder_layers": "n_layers", "num_decoder_layers": "n_layers",
    "ffn_hidden_size": "ffn_hidden", "intermediate_size": "ffn_hidden", "base_mlp_dim": "ffn_hidden",
    "mlp_hidden_size": "fused_ffn", "mlp_ratio": "mlp_ratio", "expansion_ratio": "expansion_ratio",
    "num_attention_heads": "n_heads", "n_heads": "n_heads", "n_head": "n_heads", "base_num_query_heads": "n_heads",
    "num_query_groups": "n_kv_heads", "num_key_value_heads": "n_kv_heads", "n_kv_heads": "n_kv_heads",
    "n_kv_head": "n_kv_heads", "base_num_kv_heads": "n_kv_heads",
    "head_dim": "head_dim", "kv_channels": "head_dim",
    "vocab_size": "vocab", "padded_vocab_size": "padded_vocab_used",
    "num_experts": "n_experts", "num_local_experts": "n_experts", "n_routed_experts": "n_experts",
    "moe_router_topk": "top_k", "num_experts_per_tok": "top_k",
    "moe_ffn_hidden_size": "expert_ffn", "moe_intermediate_size": "expert_ffn", "base_moe_mlp_dim": "expert_ffn",
    "moe_shared_expert_intermediate_size": "shared_expert_ffn", "shared_expert_intermediate_size": "shared_expert_ffn",
    "swiglu": "swiglu", "gated_linear_unit": "swiglu",
    "mlp_activations": "mlp_activations", "ffn_type": "ffn_type", "glu_activation": "glu_activation",
    "activation_type": "glu_activation", "activation": "glu_activation", "mlp_class_name": "mlp_class",
    "n_query_groups": "n_kv_heads", "hidden_act": "hidden_act",
    "model_type": "model_type",
    "group_query_attention": "group_query_attention", "tie_word_embeddings": "tied_embeddings",
    "weight_tying": "tied_embeddings",
    "untie_embeddings_and_output_weights": "untied_embeddings",
    "q_lora_rank": "q_lora", "kv_lora_rank": "kv_lora", "qk_head_dim": "nope", "qk_nope_head_dim": "nope",
    "qk_pos_emb_head_dim": "rope", "qk_rope_head_dim": "rope", "v_head_dim": "v", "mtp_num_layers": "mtp_layers",
    "num_nextn_predict_layers": "mtp_layers", "multiple_of": "multiple_of",
    "ffn_dim_multiplier": "ffn_dim_multiplier", "flavor": "flavor",
    # batch and length
    "seq_length": "seq_length", "seq_len": "seq_length", "sequence_len": "seq_length", "max_seq_len": "seq_length",
    "max_sequence_length": "seq_length", "encoder_seq_length": "seq_length",
    "sequence_length": "seq_length", "max_target_length": "seq_length", "block_size": "seq_length",
    "global_batch_size": "global_batch_size", "train_batch_size": "global_batch_size",
    "global_train_batch_size": "global_batch_size",
    "micro_batch_size": "micro_batch_size", "train_micro_batch_size_per_gpu": "micro_batch_size",
    "per_device_train_batch_size": "micro_batch_size", "local_batch_size": "micro_batch_size",
    "per_device_batch_size": "per_device_batch_size", "batch_size": "batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "batch_accumulation_per_replica": "gradient_accumulation_steps",
    "accumulate_grad_batches": "gradient_accumulation_steps",
    "train_iters": "total_steps", "train_steps": "total_steps", "max_steps": "total_steps",
    "log_interval": "log_interval", "log_freq": "log_interval", "steps_per_print": "log_interval",
    "logging_steps": "log_interval",
    # parallel sizes
    "world_size": "world_size", "data_parallel_size": "data_parallel",
    "tensor_model_parallel_size": "tensor_parallel", "model_parallel_size": "tensor_parallel",
    "tensor_parallel_degree": "tensor_parallel", "pipeline_model_parallel_size": "pipeline_parallel",
    "pipe_parallel_size": "pipeline_parallel", "pipeline_parallel_degree": "pipeline_parallel",
    "virtual_pipeline_model_parallel_size": "pipeline_chunks",
    "pipeline_parallel_microbatches": "pipeline_microbatches",
    "pipeline_parallel_microbatch_size": "pipeline_microbatch_size",
    "context_parallel_size": "context_parallel", "context_parallel_degree": "context_parallel",
    "expert_model_parallel_size": "expert_parallel", "num_gpus_per_node": "gpus_per_node", "num_nodes": "nodes",
    "devices": "gpus_per_node", "n_gpus_per_node": "gpus_per_node", "nnodes": "nodes", "n_gpus": "world_size",
    "device_train_microbatch_size": "micro_batch_size",
    # precision and recomputation
    "bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "fp4": "fp4", "precision": "precision_name",
    "checkpoint_activations": "checkpoint_activations", "gradient_checkpointing": "gradient_checkpointing",
    "recompute_granularity": "recompute_granularity", "peak_theoretical_tflops": "peak_tflops",
    "n_params": "num_params",
}  # fmt: skip
"""Names in argument blocks, config dumps and reprs, and the fact each one is."""

PARALLEL_KEYS = {
    "dp": "data_parallel", "tp": "tensor_parallel", "pp": "pipeline_parallel", "cp": "context_parallel",
    "expert_parallel_size": "expert_parallel",
}  # fmt: skip
"""Short names, trusted inside ``ParallelismArgs(...)`` only."""

LAYOUT_FACTS = frozenset(
    (
        "world_size",
        "data_parallel",
        "tensor_parallel",
        "pipeline_parallel",
        "context_parallel",
        "expert_parallel",
    )
)

_PARAMETERS = rf"(?P<num_params>{NUMBER})\s?(?P<num_params_unit>billion|million|[KMGBT]\b)?"

LINES = tuple(
    (literals_of(form)[0], form)
    for form in map(re.compile, (
        r"using world size: (?P<world_size>\d+)",
        r"\(\d+/(?P<world_size>\d+)\) Training started",
        r"data-parallel size: (?P<data_parallel>\d+)",
        r"\bcontext-parallel size: (?P<context_parallel>\d+)",
        r"tensor-model-parallel size: (?P<tensor_parallel>\d+)",
        r"pipeline-model-parallel size: (?P<pipeline_parallel>\d+)",
        r"> padded vocab \(size: (?P<vocab>\d+)\) with \d+ dummy tokens \(new size: (?P<padded_vocab_used>\d+)\)",
        r"number of parameters on (?:\(tensor, pipeline\) )?model parallel rank .*: (?P<rank_params>\d+)",
        rf"Total number of parameters in billions: (?P<billions>{NUMBER})",
        r"Total train batch size \([^)]*\) = (?P<global_batch_size>[\d,]+)",
        r"Instantaneous batch size per device = (?P<micro_batch_size>[\d,]+)",
        r"Gradient Accumulation steps = (?P<gradient_accumulation_steps>[\d,]+)",
        r"Total optimization steps = (?P<total_steps>[\d,]+)",
        r"Num Epochs = (?P<num_epochs>[\d,]+)",
        r"Number of trainable parameters = (?P<trainable_params>[\d,]+)",
        r"Trainable parameters: (?P<trainable_params>[\d,]+)",
        r"trainable params: (?P<trainable_params>[\d,]+) \|\| all params: (?P<num_params>[\d,]+)",
        r"Number of non-trainable parameters: (?P<frozen_params>[\d,]+)",
        r"Number of trainable parameters: (?P<trainable_params>[\d,]+)",
        r"Total parameters: (?P<num_params>[\d,]+)",
        r"total_num_parameters:? (?P<num_params>[\d,]+)",
        r"Starting with (?P<world_size>\d+) processes",
        r"GLOBAL_RANK: \d+, MEMBER: \d+/(?P<world_size>\d+)",
        r"contains (?P<num_params>[\d.]+)(?P<num_params_unit>[BM]) parameters",
        r"Total training steps: (?P<total_steps>\d+)",
        r"Building (?P<model_family>\w+) \S+ with \w+\(",
        r"Model (?P<model_family>\S+) \S+ size: (?P<num_params>[\d,]+) total parameters",
        r"^total\s+: (?P<num_params>[\d,]{6,})$",
        r"num\. model params: (?P<num_params>[\d,]+)",
        r"TOTAL_PARAMS=(?P<num_params>\d+)",
        r"num_parameters\s*\| (?P<num_params>\d+)",
        rf"[Tt]otal number of parameters: {_PARAMETERS}",
        rf"^\W*number (?:of )?parameters: {_PARAMETERS}",
        rf"Model params: {_PARAMETERS}",
        rf"model_parameter_info: \w+: (?P<millions>{NUMBER})M Params",
        rf"model_parameter_info: .*?\((?P<trainable_millions>{NUMBER})M Trainable",
        r"tokens per iteration will be: (?P<tokens_per_step>[\d,]+)",
        r"total desired batch size: (?P<tokens_per_step>[\d,]+)",
        r"=> calculated gradient accumulation steps: (?P<gradient_accumulation_steps>\d+)",
        r"Num GPUs used = (?P<world_size>\d+)",
        r"Total steps = (?P<total_steps>[\d,]+)",
        (r"Batch size per device = (?P<micro_batch_size>\d+) \| Gradient accumulation steps ="
        r" (?P<gradient_accumulation_steps>\d+)"),
        r"Total batch size \([^)]*\) = (?P<global_batch_size>[\d,]+)",
        r"Trainable parameters = (?P<trainable_params>[\d,]+) of (?P<num_params>[\d,]+)",
        (r"Total batch size (?P<tokens_per_step>[\d,]+) => gradient accumulation steps:"
        r" (?P<gradient_accumulation_steps>\d+)"),
        r"Tokens / micro-batch: (?P<tokens_per_micro_batch>[\d,]+)",
        (r"Tokens / micro-batch / rank: (?P<micro_batch_size>\d+) x (?P<seq_length>\d+) ="
        r" (?P<tokens_per_rank_batch>[\d,]+)"),
        r"total batch size\s*\| (?P<tokens_per_step>\d+)",
        r"micro batch size B\s*\| (?P<micro_batch_size>\d+)",
        r"sequence length T\s*\| (?P<seq_length>\d+)",
        r"num_layers L\s*\| (?P<n_layers>\d+)",
        r"num_heads NH\s*\| (?P<n_heads>\d+)",
        r"vocab_size V\s*\| (?P<vocab>\d+)",
        r"channels C\s*\| (?P<hidden>\d+)",
        r"num_processes\s*\| (?P<world_size>\d+)",
        r"^\| device\s*\| (?P<device_name>\S.*?)\s*\|",
        rf"Estimated FLOPs per token: (?P<flops_per_token>{NUMBER})",
        rf"GPU: (?P<device_name>[^|]+?) \| Peak FLOPS \(BF16\): (?P<peak_flops>{NUMBER})",
        rf"Peak FLOPS used for computing MFU: (?P<peak_flops>{NUMBER})",
        rf"Device: (?P<device_name>[^,]+(?:, ?\d+GB)?), Device peak Flops/s: (?P<peak_flops>{NUMBER})",
        r"(?:CUDA|GPU) capacity: (?P<device_name>.+?)(?: \(\d+\))? with [\d.]+GiB",
        r"Vocab size: (?P<vocab>[\d,]+)$",
        r"local batch size (?P<micro_batch_size>\d+), global batch size (?P<global_batch_size>\d+)",
        r"gradient accumulation steps (?P<gradient_accumulation_steps>\d+), sequence length (?P<seq_length>\d+)",
        r"sequence length \d+, total steps (?P<total_steps>\d+)",
        r"\bep=(?P<expert_parallel>\d+), etp=",
        rf"^\W*Total TFLOPs: (?P<step_tflops_per_device>{NUMBER})",
        r"Num_devices: (?P<world_size>\d+)",
        r"Config param (?P<config_key>\w+): (?P<config_value>\S.*?)\s*$",
        r"training on (?P<world_size>\d+) (?:GPUs|devices)",
        r"[Ww]orld[ _]size[:=] ?(?P<world_size>\d+)",
        r"Global batch size: (?P<global_batch_size>\d+), micro batch size: (?P<micro_batch_size>\d+)",
        r"type='\w+' batch_size=(?P<global_batch_size>\d+) seq_len=(?P<seq_length>\d+)",
        (r"mbs: (?P<micro_batch_size>\d+) \| grad_accum: (?P<gradient_accumulation_steps>\d+) \|"
        r" global_batch_size: (?P<global_batch_size>\d+) \| sequence_length: (?P<seq_length>\d+)"),
        r"restore_from_step=(?P<ignored>\d+)",
    ))
)  # fmt: skip
"""Lines that state facts, each with what a line must hold to be one; the groups are named after the facts."""

MESH = re.compile(r"device mesh with parallelism: ((?:\w+=\d+(?:, )?)+)")
MESH_2024 = re.compile(r"device mesh with \[([^\]]*)\], \[([\d, ]+)\]")

FLAVORS = {
    "8B": (4096, 32, 32, 8, 14336, 128256),
    "70B": (8192, 80, 64, 8, 28672, 128256),
    "405B": (16384, 126, 128, 8, 53248, 128256),
}
"""Llama 3 by torchtitan's flavor: hidden, layers, heads, key-value heads, feed-forward, vocabulary."""
