"""A few steps of TRL's SFTTrainer with a tiny model, a tokenizer made here, and packed sequences."""

import sys

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

WORDS = [f"w{number}" for number in range(100)]


def tokenizer() -> PreTrainedTokenizerFast:
    names = ["<pad>", "<s>", "</s>", "<unk>", *WORDS]
    made = Tokenizer(models.WordLevel({name: index for index, name in enumerate(names)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def callbacks() -> list[object]:
    if "--callback" not in sys.argv:
        return []
    from flopwatch.integrations.transformers import FlopwatchCallback

    return [FlopwatchCallback()]


config = LlamaConfig(
    vocab_size=104, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=4, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
texts = [" ".join(WORDS[(start + n) % 100] for n in range(5 + start % 40)) for start in range(400)]
arguments = SFTConfig(
    output_dir=sys.argv[1], max_steps=10, per_device_train_batch_size=4, gradient_accumulation_steps=1, logging_steps=1,
    save_strategy="no", report_to=[], use_cpu=True, bf16=False, max_length=48, packing="--packing" in sys.argv,
    disable_tqdm="--quiet" in sys.argv,
)  # fmt: skip
trainer = SFTTrainer(
    model=LlamaForCausalLM(config), args=arguments, train_dataset=Dataset.from_dict({"text": texts}),
    processing_class=tokenizer(), callbacks=callbacks(),
)  # fmt: skip
trainer.train()
