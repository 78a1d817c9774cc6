"""A model of many small calls. Must not know where it runs."""

import torch
from torch import nn


class Norms(nn.Module):
    """The same weights each time."""

    def __init__(self, depth=4, size=16):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(size, size) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(depth))

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = norm(x + torch.tanh(layer(x)))
        return x
