"""Encoders, encoder-decoders and models with a vision tower of Hugging Face, by model type."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flopwatch.blocks import Attention, Block, DenseMlp, Mask
from flopwatch.huggingface.decoder import UNGATED, dense_mlp, heads_of, hidden_of, layers_of
from flopwatch.huggingface.reader import HfConfig

BIDIRECTIONAL = Mask(causal=False)


def encoder_blocks(config: HfConfig, *, gated: bool = False) -> tuple[Block, ...]:
    """Bidirectional layers with an ungated MLP, as BERT and vision transformers have them."""
    heads, hidden = heads_of(config), hidden_of(config)
    mixer = Attention(heads=heads, kv_heads=heads, head_dim=hidden // heads, mask=BIDIRECTIONAL)
    mlp = DenseMlp(ffn=dense_mlp(config, UNGATED).ffn, gated=gated)
    return (Block(count=layers_of(config), mixer=mixer, mlp=mlp),)


def bert(config: HfConfig) -> dict[str, Any]:
    """BERT and RoBERTa with the masked-language head: an h*h transform and the tied vocabulary."""
    hidden = hidden_of(config)
    return {
        "hidden": hidden,
        "vocab": config.whole("vocab_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=True),
        "learned_positions": config.whole("max_position_embeddings", minimum=0, default=512),
        "entry_weights": hidden * hidden,
        "blocks": encoder_blocks(config),
    }


def patch_tokens(config: HfConfig, *, class_token: bool) -> int:
    """Tokens of one image."""
    side = config.whole("image_size") // config.whole("patch_size")
    if side < 1:
        raise config.refused("image_size", "at least patch_size")
    return side * side + (1 if class_token else 0)


def patch_weights(config: HfConfig) -> int:
    """Weights of the patch embedding, a matmul of each patch."""
    return config.whole("num_channels", default=3) * config.whole("patch_size") ** 2 * hidden_of(config)


def vit(config: HfConfig) -> dict[str, Any]:
    """A vision transformer: tokens are patches; the classifier, once an image, is left out."""
    return {
        "hidden": hidden_of(config),
        "vocab": 0,
        "learned_positions": patch_tokens(config, class_token=True),
        "seq_len": patch_tokens(config, class_token=True),
        "entry_weights": patch_weights(config),
        "blocks": encoder_blocks(config),
    }


def t5(config: HfConfig) -> dict[str, Any]:
    """T5: the decoder is the shape, the encoder its second stack; trained tokens are the decoder's."""
    heads, width = config.whole("num_heads"), config.whole("d_kv")
    hidden = config.whole("d_model")
    kind = config.get("feed_forward_proj") or "relu"
    if kind not in ("relu", "gelu", "gated-gelu", "gated-silu"):
        raise config.refused("feed_forward_proj", "relu, gelu, gated-gelu, gated-silu")
    mlp = DenseMlp(ffn=config.whole("d_ff"), gated=kind.startswith("gated-"))
    layers = config.whole("num_layers")
    config.get("is_encoder_decoder")
    own = Attention(heads=heads, kv_heads=heads, head_dim=width)
    look = Attention(heads=heads, kv_heads=heads, head_dim=width, mask=BIDIRECTIONAL, key_value_hidden=hidden)
    decoder = Block(count=config.whole("num_decoder_layers", default=layers), mixer=own, mlp=mlp, cross=look)
    encoder = Block(
        count=layers,
        mixer=Attention(heads=heads, kv_heads=heads, head_dim=width, mask=BIDIRECTIONAL),
        mlp=mlp,
    )
    return {
        "hidden": hidden,
        "vocab": config.whole("vocab_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=True),
        "blocks": (decoder,),
        "stacks": [{"name": "encoder", "hidden": hidden, "blocks": (encoder,)}],
    }


def _bart_stack(config: HfConfig, side: str, mask: Mask) -> Block:
    heads, hidden = config.whole(f"{side}_attention_heads"), config.whole("d_model")
    width = hidden // heads
    look = Attention(heads=heads, kv_heads=heads, head_dim=width, mask=BIDIRECTIONAL, key_value_hidden=hidden)
    return Block(
        count=config.whole(f"{side}_layers"),
        mixer=Attention(heads=heads, kv_heads=heads, head_dim=width, mask=mask),
        mlp=DenseMlp(ffn=config.whole(f"{side}_ffn_dim"), gated=False),
        cross=look if side == "decoder" else None,
    )


def bart(config: HfConfig) -> dict[str, Any]:
    """BART and its kind: the decoder is the shape, the encoder its second stack, both with an ungated MLP."""
    config.get("is_encoder_decoder", "num_hidden_layers")
    hidden = config.whole("d_model")
    return {
        "hidden": hidden,
        "vocab": config.whole("vocab_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=True),
        "learned_positions": config.whole("max_target_positions", "max_position_embeddings"),
        "blocks": (_bart_stack(config, "decoder", Mask()),),
        "stacks": [
            {
                "name": "encoder",
                "hidden": hidden,
                "blocks": (_bart_stack(config, "encoder", BIDIRECTIONAL),),
            }
        ],
    }


def whisper(config: HfConfig) -> dict[str, Any]:
    """Whisper: BART's two stacks; two convolutions of width three make an encoder token of two frames."""
    values = bart(config)
    hidden = values["hidden"]
    convolutions = 3 * hidden * (hidden + 2 * config.whole("num_mel_bins", default=80))
    (encoder,) = values["stacks"]
    encoder |= {
        "entry_weights": convolutions,
        "stored_weights": convolutions,
        "tokens_per_item": config.whole("max_source_positions", default=1500),
    }
    return values


def dinov2(config: HfConfig) -> dict[str, Any]:
    """DINOv2: a vision transformer, its large size with a gated MLP of two thirds, rounded up to eights."""
    values = vit(config)
    hidden, ratio = values["hidden"], config.whole("mlp_ratio", default=4)
    gated = config.flag("use_swiglu_ffn")
    width = (ratio * hidden * 2 // 3 + 7) // 8 * 8 if gated else ratio * hidden
    (block,) = values["blocks"]
    registers = config.whole("num_register_tokens", minimum=0, default=0)
    tokens = values["seq_len"] + registers
    return values | {
        "blocks": (replace(block, mlp=DenseMlp(ffn=width, gated=gated)),),
        "seq_len": tokens,
        "learned_positions": tokens,
    }


def tower(config: HfConfig, projector_weights: int) -> dict[str, Any]:
    """CLIP's and SigLIP's tower with the projector that all its tokens pass."""
    entry = patch_weights(config) + projector_weights
    class_token = str(config.get("model_type") or "").startswith("clip")
    return {
        "name": "vision",
        "hidden": hidden_of(config),
        "blocks": encoder_blocks(config),
        "entry_weights": entry,
        "stored_weights": entry,
        "tokens_per_item": patch_tokens(config, class_token=class_token),
    }


def llava_tower(config: HfConfig, text_hidden: int) -> dict[str, Any]:
    """LLaVA: two matrices from the tower's width to the text's."""
    vision = config.part("vision_config")
    width = hidden_of(vision)
    stack = tower(vision, width * text_hidden + text_hidden**2)
    vision.finish("vision tower")
    return stack


def gemma3_tower(config: HfConfig, text_hidden: int) -> dict[str, Any]:
    """Gemma 3: one matrix on the pooled tokens, spread over the tower's tokens."""
    vision = config.part("vision_config")
    pooled = config.whole("mm_tokens_per_image", default=256)
    share = hidden_of(vision) * text_hidden * pooled // patch_tokens(vision, class_token=False)
    stack = tower(vision, share)
    vision.finish("vision tower")
    return stack


def llama4_tower(config: HfConfig, text_hidden: int) -> dict[str, Any]:
    """Llama 4: an adapter of two matrices and a projector on a quarter of the tower's tokens."""
    vision = config.part("vision_config")
    width, output = vision.whole("projector_input_dim"), vision.whole("projector_output_dim")
    ratio = vision.get("pixel_shuffle_ratio")
    if not isinstance(ratio, float) or not 0 < ratio <= 1:
        raise vision.refused("pixel_shuffle_ratio", "above 0, at most 1")
    shuffled = int(hidden_of(vision) / ratio**2)
    after = shuffled * width + width * output + vision.whole("vision_output_dim") * text_hidden
    stack = tower(vision, int(after * ratio**2))
    stack["tokens_per_item"] = patch_tokens(vision, class_token=True)
    vision.finish("vision tower")
    return stack


def qwen2_vl_tower(config: HfConfig, text_hidden: int) -> dict[str, Any]:
    """Qwen2-VL: full attention inside an image, two frames a patch, a merger on each 2 x 2 tokens."""
    vision = config.part("vision_config")
    hidden, heads = vision.whole("embed_dim"), vision.whole("num_heads")
    ratio = vision.get("mlp_ratio")
    width = int(hidden * ratio) if isinstance(ratio, int | float) else 4 * hidden
    merged = hidden * vision.whole("spatial_merge_size", default=2) ** 2
    patch = vision.whole("in_channels", "in_chans", default=3) * vision.whole("patch_size") ** 2
    entry = patch * vision.whole("temporal_patch_size", default=2) * hidden
    entry += merged * (merged + text_hidden) * hidden // merged
    mixer = Attention(heads=heads, kv_heads=heads, head_dim=hidden // heads, mask=BIDIRECTIONAL)
    block = Block(count=vision.whole("depth"), mixer=mixer, mlp=DenseMlp(ffn=width, gated=False))
    vision.get("hidden_size")
    vision.finish("vision tower")
    return {
        "name": "vision",
        "hidden": hidden,
        "blocks": (block,),
        "entry_weights": entry,
        "stored_weights": entry,
    }


ENCODERS: dict[str, Callable[[HfConfig], dict[str, Any]]] = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta"), bert),
    **dict.fromkeys(("vit", "deit", "siglip_vision_model", "clip_vision_model"), vit),
    **dict.fromkeys(("t5", "mt5", "umt5"), t5),
    **dict.fromkeys(("bart", "mbart", "pegasus", "marian", "m2m_100", "blenderbot"), bart),
    "whisper": whisper,
    **dict.fromkeys(("dinov2", "dinov2_with_registers"), dinov2),
}
TOWERS: dict[str, Callable[[HfConfig, int], dict[str, Any]]] = {
    "llava": llava_tower, "gemma3": gemma3_tower, "paligemma": llava_tower, "llama4": llama4_tower,
    "qwen2_vl": qwen2_vl_tower, "mistral3": llava_tower,
}  # fmt: skip
