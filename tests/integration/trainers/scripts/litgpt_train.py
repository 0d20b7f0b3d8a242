"""A few steps of LitGPT's pretraining with a tiny model and random tokens; arguments: folder, more are ignored."""

import sys
from pathlib import Path

import torch
from litgpt.args import EvalArgs, TrainArgs
from litgpt.config import Config
from litgpt.data import DataModule
from litgpt.pretrain import setup


class Random(DataModule):
    """Batches of random tokens."""

    batch_size = 4

    def connect(
        self, tokenizer: object = None, batch_size: int = 1, max_seq_length: int | None = None
    ) -> None:
        self.batch_size = batch_size

    def loader(self) -> torch.utils.data.DataLoader:
        rows = torch.randint(0, 256, (400, 33), generator=torch.Generator().manual_seed(1))
        return torch.utils.data.DataLoader(rows, batch_size=self.batch_size)

    def train_dataloader(self) -> torch.utils.data.DataLoader:
        return self.loader()

    def val_dataloader(self) -> torch.utils.data.DataLoader:
        return self.loader()


config = Config(
    name="tiny", block_size=32, vocab_size=256, padded_vocab_size=256, n_layer=2, n_head=4, n_embd=32,
    rotary_percentage=1.0, parallel_residual=False, bias=False, norm_class_name="RMSNorm", mlp_class_name="LLaMAMLP",
    intermediate_size=64,
)  # fmt: skip
setup(
    model_name="tiny", model_config=config, out_dir=Path(sys.argv[1]), precision="32-true", data=Random(), devices=1,
    logger_name="csv",
    train=TrainArgs(
        save_interval=None, log_interval=1, global_batch_size=8, micro_batch_size=4, max_tokens=12 * 8 * 32,
        max_norm=1.0, min_lr=4e-5, lr_warmup_steps=2, tie_embeddings=False,
    ),
    eval=EvalArgs(interval=6, max_iters=2, initial_validation=False, final_validation=False),
)  # fmt: skip
