"""A few steps of the HF Trainer with a tiny model of random weights; prints as a user's script would."""

import os
import sys
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

LENGTH = 32
PACE_SECONDS = float(os.environ.get("PACE_SECONDS", "0"))


class Tokens(torch.utils.data.Dataset):
    """Sequences of one length."""

    def __init__(self, count: int) -> None:
        self.rows = torch.randint(0, 256, (count, LENGTH), generator=torch.Generator().manual_seed(1))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        time.sleep(PACE_SECONDS)
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def callbacks() -> list[object]:
    if "--callback" not in sys.argv:
        return []
    from flopwatch.integrations.transformers import FlopwatchCallback

    return [FlopwatchCallback(job_name="tiny")]


config = LlamaConfig(
    vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64,
)  # fmt: skip
arguments = TrainingArguments(
    output_dir=sys.argv[1], max_steps=12, per_device_train_batch_size=4, gradient_accumulation_steps=2, logging_steps=2,
    eval_strategy="steps", eval_steps=6, save_steps=6, report_to=[], use_cpu=True,
    include_num_input_tokens_seen="--tokens" in sys.argv,
)  # fmt: skip
trainer = Trainer(
    model=LlamaForCausalLM(config), args=arguments, train_dataset=Tokens(200), eval_dataset=Tokens(16),
    callbacks=callbacks(),
)  # fmt: skip
trainer.train(resume_from_checkpoint="--resume" in sys.argv)
