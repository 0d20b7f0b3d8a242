"""Configs as model repositories publish them, cut to the keys that say something of the shape."""

LLAMA_3_8B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 8192, "tie_word_embeddings": False, "hidden_act": "silu", "torch_dtype": "bfloat16",
}  # fmt: skip
MISTRAL_7B = {
    "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "sliding_window": 4096,
    "tie_word_embeddings": False,
}  # fmt: skip
MIXTRAL_8X7B = {
    "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "sliding_window": None,
    "num_local_experts": 8, "num_experts_per_tok": 2, "router_aux_loss_coef": 0.02, "tie_word_embeddings": False,
}  # fmt: skip
QWEN2_5_7B = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "sliding_window": 131072,
    "max_window_layers": 28, "use_sliding_window": False, "tie_word_embeddings": False,
}  # fmt: skip
QWEN3_8B = {
    "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "head_dim": 128,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 151936, "sliding_window": None,
    "max_window_layers": 36, "use_sliding_window": False, "tie_word_embeddings": False,
}  # fmt: skip
QWEN2_57B_A14B = {
    "model_type": "qwen2_moe", "hidden_size": 3584, "intermediate_size": 18944, "moe_intermediate_size": 2560,
    "shared_expert_intermediate_size": 20480, "num_hidden_layers": 28, "num_attention_heads": 28,
    "num_key_value_heads": 4, "vocab_size": 151936, "num_experts": 64, "num_experts_per_tok": 8,
    "decoder_sparse_step": 1, "use_sliding_window": False, "sliding_window": 65536, "tie_word_embeddings": False,
}  # fmt: skip
QWEN3_30B_A3B = {
    "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
    "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "use_sliding_window": False, "sliding_window": None, "tie_word_embeddings": False,
}  # fmt: skip
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "vocab_size": 129280,
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
    "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "num_nextn_predict_layers": 1, "tie_word_embeddings": False,
}  # fmt: skip
DEEPSEEK_V2_LITE = {
    "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
    "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 102400,
    "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
    "moe_layer_freq": 1, "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "tie_word_embeddings": False,
}  # fmt: skip
GEMMA_7B = {
    "model_type": "gemma", "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "vocab_size": 256000,
}  # fmt: skip
GEMMA_2_9B = {
    "model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "vocab_size": 256000,
    "sliding_window": 4096, "sliding_window_size": 4096,
}  # fmt: skip
GEMMA_3_4B = {
    "model_type": "gemma3", "mm_tokens_per_image": 256,
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
        "sliding_window": 1024, "sliding_window_pattern": 6,
    },
    "vision_config": {
        "model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
        "num_attention_heads": 16, "image_size": 896, "patch_size": 14,
    },
}  # fmt: skip
GPT2 = {
    "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "n_ctx": 1024,
    "vocab_size": 50257, "activation_function": "gelu_new", "n_inner": None,
}  # fmt: skip
GPT_NEOX_20B = {
    "model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576, "num_hidden_layers": 44,
    "num_attention_heads": 64, "vocab_size": 50432, "tie_word_embeddings": False,
}  # fmt: skip
GPT_OSS_120B = {
    "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36, "head_dim": 64,
    "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 201088, "num_local_experts": 128,
    "num_experts_per_tok": 4, "experts_per_token": 4, "sliding_window": 128, "tie_word_embeddings": False,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
}  # fmt: skip
PHI_2 = {
    "model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 51200, "tie_word_embeddings": False,
}  # fmt: skip
PHI_3_MINI = {
    "model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064, "sliding_window": 2047,
    "tie_word_embeddings": False,
}  # fmt: skip
OLMO_2_7B = {
    "model_type": "olmo2", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 100352, "tie_word_embeddings": False,
}  # fmt: skip
OLMOE_7B = {
    "model_type": "olmoe", "hidden_size": 2048, "intermediate_size": 1024, "num_hidden_layers": 16,
    "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 50304, "num_experts": 64,
    "num_experts_per_tok": 8, "tie_word_embeddings": False,
}  # fmt: skip
FALCON_7B = {
    "model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
    "multi_query": True, "new_decoder_architecture": False, "vocab_size": 65024, "num_kv_heads": 71,
}  # fmt: skip
FALCON_40B = {
    "model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128,
    "multi_query": True, "new_decoder_architecture": True, "vocab_size": 65024, "num_kv_heads": 8,
}  # fmt: skip
GRANITE_3_8B = {
    "model_type": "granite", "hidden_size": 4096, "intermediate_size": 12800, "num_hidden_layers": 40,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 49155, "tie_word_embeddings": True,
}  # fmt: skip
NEMOTRON_H_8B = {
    "model_type": "nemotron_h", "hidden_size": 4096, "intermediate_size": 21504, "num_hidden_layers": 52,
    "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    "num_attention_heads": 32, "num_key_value_heads": 8, "attention_head_dim": 128, "mamba_num_heads": 128,
    "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128, "vocab_size": 131072, "tie_word_embeddings": False,
}  # fmt: skip
MAMBA2_2_7B = {
    "model_type": "mamba2", "hidden_size": 2560, "num_hidden_layers": 64, "expand": 2, "head_dim": 64, "num_heads": 80,
    "state_size": 128, "n_groups": 1, "vocab_size": 50288, "tie_word_embeddings": True,
}  # fmt: skip
MAMBA_2_8B = {
    "model_type": "mamba", "hidden_size": 2560, "intermediate_size": 5120, "num_hidden_layers": 64, "state_size": 16,
    "time_step_rank": 160, "vocab_size": 50280, "tie_word_embeddings": True,
}  # fmt: skip
JAMBA = {
    "model_type": "jamba", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 65536, "attn_layer_period": 8,
    "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 16,
    "num_experts_per_tok": 2, "mamba_d_state": 16, "mamba_expand": 2, "mamba_dt_rank": 256, "mamba_d_conv": 4,
    "sliding_window": None, "tie_word_embeddings": False,
}  # fmt: skip
QWEN3_NEXT_80B = {
    "model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5120, "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512, "num_hidden_layers": 48, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 151936, "num_experts": 512, "num_experts_per_tok": 10,
    "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "decoder_sparse_step": 1, "tie_word_embeddings": False,
}  # fmt: skip
LLAMA_4_MAVERICK = {
    "model_type": "llama4",
    "text_config": {
        "model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
        "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 202048, "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
        "attention_chunk_size": 8192, "tie_word_embeddings": False,
    },
    "vision_config": {
        "model_type": "llama4_vision_model", "hidden_size": 1408, "intermediate_size": 5632, "num_hidden_layers": 34,
        "num_attention_heads": 16, "image_size": 336, "patch_size": 14, "pixel_shuffle_ratio": 0.5,
        "projector_input_dim": 4096, "projector_output_dim": 4096, "vision_output_dim": 4096,
    },
}  # fmt: skip
T5_BASE = {
    "model_type": "t5", "d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_decoder_layers": 12,
    "num_heads": 12, "vocab_size": 32128, "feed_forward_proj": "relu", "is_encoder_decoder": True,
}  # fmt: skip
BERT_BASE = {
    "model_type": "bert", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "vocab_size": 30522, "max_position_embeddings": 512,
}  # fmt: skip
VIT_BASE = {
    "model_type": "vit", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "image_size": 224, "patch_size": 16, "num_channels": 3,
}  # fmt: skip
LLAVA_1_5_7B = {
    "model_type": "llava",
    "text_config": {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064, "tie_word_embeddings": False,
    },
    "vision_config": {
        "model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "image_size": 336, "patch_size": 14, "projection_dim": 768, "vocab_size": 32000,
    },
}  # fmt: skip
QWEN2_VL_7B = {
    "model_type": "qwen2_vl", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "use_sliding_window": False,
    "sliding_window": 32768, "tie_word_embeddings": False,
    "vision_config": {
        "depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "hidden_size": 3584,
        "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
    },
}  # fmt: skip
ARCTIC = {
    "model_type": "arctic", "hidden_size": 7168, "intermediate_size": 4864, "num_hidden_layers": 35,
    "num_attention_heads": 56, "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 128,
    "num_experts_per_tok": 2, "moe_layer_frequency": 1, "parallel_attn_mlp_res": True, "sliding_window": None,
    "tie_word_embeddings": False,
}  # fmt: skip
APERTUS_70B = {
    "model_type": "apertus", "hidden_size": 8192, "intermediate_size": 43008, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 131072, "hidden_act": "xielu",
    "tie_word_embeddings": False,
}  # fmt: skip
ARCEE_4_5B = {
    "model_type": "arcee", "hidden_size": 2560, "intermediate_size": 18432, "num_hidden_layers": 36,
    "num_attention_heads": 20, "num_key_value_heads": 4, "vocab_size": 128004, "hidden_act": "relu2",
    "tie_word_embeddings": False,
}  # fmt: skip
GLM_4_32B = {
    "model_type": "glm4", "hidden_size": 6144, "intermediate_size": 23040, "num_hidden_layers": 61,
    "num_attention_heads": 48, "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 151552,
    "partial_rotary_factor": 0.5, "tie_word_embeddings": False,
}  # fmt: skip
MINIMAX_M2 = {
    "model_type": "minimax_m2", "hidden_size": 3072, "intermediate_size": 1536, "num_hidden_layers": 62,
    "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 200064,
    "num_local_experts": 256, "num_experts_per_tok": 8, "shared_intermediate_size": 0, "attn_type_list": [1] * 62,
    "tie_word_embeddings": False,
}  # fmt: skip
