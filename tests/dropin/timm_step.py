"""Training steps of a small model of timm's with its own optimizer, loss, mixup and averaged weights.

--plain: without torch.compile.
"""

import json
import sys

import timm
import timm.data
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch


def main():
    torch.manual_seed(0)
    timm.utils.random_seed(0)
    model = timm.create_model("resnet10t", num_classes=4, drop_rate=0.1)
    average = timm.utils.ModelEmaV3(model, decay=0.9)
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    scheduler, _ = timm.scheduler.create_scheduler_v2(optimizer, num_epochs=4, warmup_epochs=1)
    mixup = timm.data.Mixup(mixup_alpha=0.2, num_classes=4)
    criterion = timm.loss.SoftTargetCrossEntropy()
    step = model if "--plain" in sys.argv else torch.compile(model)
    losses = []
    for epoch in range(4):
        step.train()
        images, classes = mixup(torch.randn(4, 3, 64, 64), torch.arange(4))
        loss = criterion(step(images), classes)
        optimizer.zero_grad()
        loss.backward()
        timm.utils.dispatch_clip_grad(model.parameters(), 1.0)
        optimizer.step()
        average.update(model)
        scheduler.step(epoch + 1)
        losses.append(loss.item())
    step.eval()
    with torch.no_grad():
        losses.append(step(torch.ones(2, 3, 64, 64)).float().sum().item())
    print("losses", json.dumps(losses))


if __name__ == "__main__":
    main()
