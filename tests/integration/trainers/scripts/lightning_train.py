"""A few steps of Lightning's Trainer with a tiny language model; metrics.csv as CSVLogger writes it."""

import os
import sys
import time
import warnings

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint, ThroughputMonitor
from lightning.pytorch.loggers import CSVLogger

warnings.filterwarnings("ignore")
BATCH, LENGTH = 4, 32
PACE_SECONDS = float(os.environ.get("PACE_SECONDS", "0"))


class Tiny(LightningModule):
    """An embedding and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Embedding(256, 32), torch.nn.Linear(32, 256))

    def loss(self, batch: list[torch.Tensor]) -> torch.Tensor:
        (tokens,) = batch
        return torch.nn.functional.cross_entropy(self.net(tokens).flatten(0, 1), tokens.flatten())

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        time.sleep(PACE_SECONDS)
        loss = self.loss(batch)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch: list[torch.Tensor], index: int) -> None:
        self.log("val_loss", self.loss(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def loader(count: int) -> torch.utils.data.DataLoader:
    rows = torch.randint(0, 256, (count, LENGTH), generator=torch.Generator().manual_seed(1))
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), batch_size=BATCH)


def callbacks() -> list[object]:
    found: list[object] = [ModelCheckpoint(dirpath=sys.argv[1], every_n_train_steps=5)]
    if "--monitor" in sys.argv:
        found.append(
            ThroughputMonitor(batch_size_fn=lambda batch: BATCH, length_fn=lambda batch: BATCH * LENGTH)
        )
    if "--callback" in sys.argv:
        from flopwatch.integrations.lightning import FlopwatchCallback

        found.append(FlopwatchCallback())
    return found


trainer = Trainer(
    max_steps=12, accelerator="cpu", devices=1, accumulate_grad_batches=2, val_check_interval=12, log_every_n_steps=1,
    logger=CSVLogger(sys.argv[1], name="csv"), callbacks=callbacks(), enable_model_summary=False,
)  # fmt: skip
trainer.fit(Tiny(), loader(200), loader(8))
