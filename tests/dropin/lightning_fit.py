"""A small network trained by Lightning's Trainer.fit as a compiled LightningModule; prints the losses.

--plain: without torch.compile.
"""

import json
import sys
import warnings

import lightning
import torch
from torch import nn

warnings.filterwarnings("ignore", module="lightning")


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
        self.losses = []

    def training_step(self, batch, number):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("loss", loss)
        return loss

    def on_train_batch_end(self, outputs, batch, number):
        self.losses.append(float(outputs["loss"]))

    def validation_step(self, batch, number):
        x, y = batch
        self.losses.append(float(nn.functional.cross_entropy(self.net(x), y)))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def main():
    lightning.seed_everything(0)
    x = torch.randn(64, 8)
    data = torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long())
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
    module = Classifier()
    model = module if "--plain" in sys.argv else torch.compile(module)
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(model, loader, torch.utils.data.DataLoader(data, batch_size=16))
    print("losses", json.dumps(module.losses))


if __name__ == "__main__":
    main()
