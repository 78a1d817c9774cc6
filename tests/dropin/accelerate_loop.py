"""A loop with Hugging Face's accelerate, its dynamo backend switched on; gradient accumulation and clipping.

--plain: without torch.compile.
"""

import json
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn


def main():
    set_seed(0)
    backend = "NO" if "--plain" in sys.argv else "INDUCTOR"
    accelerator = Accelerator(cpu=True, dynamo_backend=backend, gradient_accumulation_steps=2)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(0.1), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
    x = torch.randn(48, 8)
    data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    losses = []
    for _ in range(3):
        model.train()
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            losses.append(sum(nn.functional.mse_loss(model(x), y).item() for x, y in loader))
    accelerator.unwrap_model(model)
    print("losses", json.dumps(losses))


if __name__ == "__main__":
    main()
