"""The workloads of the measurements: `make(name, device, small)` gives a module and its arguments, always the same."""

import torch
import torch.nn.functional as F
from torch import nn


def mlp():
    """The model of examples/train_mlp.py."""
    return nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 1024))


def two_layers():
    """A linear classifier with one hidden layer."""
    return nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


class Block(nn.Module):
    """Attention by torch's fused function, then an MLP."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        """One step."""
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Language(nn.Module):
    """A decoder in the manner of GPT."""

    def __init__(self, width, heads, depth, words, context):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, index):
        """Scores of the next word."""
        x = self.words(index) + self.places(torch.arange(index.shape[1], device=index.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class AttentionByHand(nn.Module):
    """Softmax attention written out, rotary places, rms norm, gated MLP: what llama-like code does."""

    def __init__(self, width, heads, depth):
        super().__init__()
        self.heads = heads

        def matrices(rows, columns):
            return nn.ParameterList(nn.Parameter(torch.randn(rows, columns) * width**-0.5) for _ in range(depth))

        self.qkv, self.out = matrices(width, 3 * width), matrices(width, width)
        self.gate, self.down = matrices(width, 8 * width), matrices(4 * width, width)

    def forward(self, x):
        """All layers."""
        b, t, c = x.shape
        size = c // self.heads
        mask = torch.full((t, t), float("-inf"), device=x.device, dtype=x.dtype).triu(1)
        place = torch.arange(t, device=x.device, dtype=x.dtype)[:, None]
        speed = 10000 ** (-torch.arange(0, size, 2, device=x.device, dtype=x.dtype) / size)
        cos, sin = (place * speed).cos(), (place * speed).sin()

        def turned(z):
            z1, z2 = z.chunk(2, -1)
            return torch.cat([z1 * cos - z2 * sin, z1 * sin + z2 * cos], -1)

        def normed(z):
            return z * torch.rsqrt(z.pow(2).mean(-1, keepdim=True) + 1e-6)

        for qkv, out, gate, down in zip(self.qkv, self.out, self.gate, self.down, strict=True):
            q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in (normed(x) @ qkv).chunk(3, -1))
            scores = (turned(q) @ turned(k).transpose(-1, -2) * size**-0.5 + mask).softmax(-1)
            x = x + (scores @ v).transpose(1, 2).reshape(b, t, c) @ out
            up, gated = (normed(x) @ gate).chunk(2, -1)
            x = x + (F.silu(gated) * up) @ down
        return x


class Convolutions(nn.Module):
    """Residual blocks with batch norm."""

    def __init__(self, width):
        super().__init__()

        def block(inlet, outlet, stride=1):
            convolution = nn.Conv2d(inlet, outlet, 3, stride, 1, bias=False)
            return nn.Sequential(convolution, nn.BatchNorm2d(outlet), nn.ReLU())

        self.stem, self.first = block(3, width), nn.ModuleList(block(width, width) for _ in range(4))
        self.shrink = block(width, 2 * width, 2)
        self.second = nn.ModuleList(block(2 * width, 2 * width) for _ in range(4))
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x):
        """Scores of ten classes."""
        x = self.stem(x)
        for module in self.first:
            x = x + module(x)
        x = self.shrink(x)
        for module in self.second:
            x = x + module(x)
        return self.head(x.mean((2, 3)))


class Pointwise(nn.Module):
    """A chain that is bound by memory."""

    def forward(self, x):
        """The chain."""
        y = F.gelu(x) * torch.sigmoid(x) + torch.tanh(x * 0.5).pow(2)
        y = torch.where(y > 0, y, y.exp() - 1)
        return (y - y.mean(-1, keepdim=True)) * torch.rsqrt(y.var(-1, keepdim=True, unbiased=False) + 1e-5)


def tiny_mlp():
    """Small enough that only overhead counts."""
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))


def _normal(*shape):
    return lambda device: torch.randn(*shape, device=device)


def _words(*shape):
    return lambda device: torch.randint(0, 4096, shape, device=device)


# name -> (module, its argument) at full size, then small
WORKLOADS = {
    "seed1_mlp": ((mlp, _normal(64, 1024)), (mlp, _normal(64, 1024))),
    "seed2_seq": 2 * ((two_layers, _normal(64, 1024)),),
    "gpt": (
        (lambda: Language(768, 12, 6, 8192, 1024), _words(8, 1024)),
        (lambda: Language(256, 8, 4, 4096, 256), _words(2, 128)),
    ),
    "llama_like": (
        (lambda: AttentionByHand(512, 8, 4), _normal(8, 512, 512)),
        (lambda: AttentionByHand(256, 4, 2), _normal(2, 128, 256)),
    ),
    "convnet": ((lambda: Convolutions(64), _normal(64, 3, 64, 64)), (lambda: Convolutions(16), _normal(8, 3, 32, 32))),
    "pointwise": ((Pointwise, _normal(8192, 8192)), (Pointwise, _normal(512, 1024))),
    "tiny_mlp": 2 * ((tiny_mlp, _normal(8, 16)),),
}


def make(name, device="cpu", small=False):
    """The module and the tuple of its arguments."""
    torch.manual_seed(0)
    module, argument = WORKLOADS[name][small]
    return module().to(device), (argument(device),)
