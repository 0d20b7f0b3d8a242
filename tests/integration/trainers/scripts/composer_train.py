"""A few batches of Composer with a tiny Hugging Face model; its console logger prints as a user would see it."""

import os
import sys
import time
import warnings

import torch
from composer import Trainer
from composer.callbacks import SpeedMonitor
from composer.models import HuggingFaceModel
from transformers import LlamaConfig, LlamaForCausalLM

warnings.filterwarnings("ignore")
BATCH, LENGTH = 4, 32
PACE_SECONDS = float(os.environ.get("PACE_SECONDS", "0"))


class Items(list[dict[str, torch.Tensor]]):
    """Sequences that take their time."""

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        time.sleep(PACE_SECONDS)
        return super().__getitem__(index)


def loader(count: int) -> torch.utils.data.DataLoader:
    rows = torch.randint(0, 256, (count, LENGTH), generator=torch.Generator().manual_seed(1))
    items = Items({"input_ids": row, "labels": row, "attention_mask": torch.ones_like(row)} for row in rows)
    return torch.utils.data.DataLoader(items, batch_size=BATCH)


def callbacks() -> list[object]:
    found: list[object] = [SpeedMonitor(window_size=3)] if "--monitor" in sys.argv else []
    if "--callback" in sys.argv:
        from flopwatch.integrations.composer import FlopwatchCallback

        found.append(FlopwatchCallback())
    return found


config = LlamaConfig(
    vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=4, max_position_embeddings=64,
)  # fmt: skip
model = HuggingFaceModel(LlamaForCausalLM(config), tokenizer=None, use_logits=True, shift_labels=False)
trainer = Trainer(
    model=model, train_dataloader=loader(80), eval_dataloader=loader(8), max_duration="12ba", eval_interval="6ba",
    save_folder=sys.argv[1], save_interval="6ba", progress_bar=False, log_to_console=True, console_log_interval="1ba",
    optimizers=torch.optim.AdamW(model.parameters(), lr=1e-3), device="cpu", precision="fp32", seed=1,
    callbacks=callbacks(),
)  # fmt: skip
trainer.fit()
trainer.close()
