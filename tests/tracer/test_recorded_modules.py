"""Modules recorded whole: forward and backward give what eager gives."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

pytest.importorskip("graphlift_tracer")
from recordings import check_against_eager  # noqa: E402


def call(module, *args):
    """What is recorded."""
    return module(*args)


def test_mlp():
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
    recorded = check_against_eager(call, model, torch.randn(8, 16))
    assert recorded.ops.count("aten::addmm.default") == 2
    assert recorded.traced["gradients"] == 4


class Block(nn.Module):
    """A transformer block."""

    def __init__(self, d=32, heads=4):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """A small language model."""

    def __init__(self, d=32, layers=2, vocab=64, context=16):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(context, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1], device=idx.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def test_gpt():
    check_against_eager(call, Gpt(), torch.randint(0, 64, (2, 12)), rtol=1e-4, atol=1e-5)


def test_gpt_symbolic():
    idx = torch.randint(0, 64, (3, 12))
    recorded = check_against_eager(
        call, Gpt(), idx, symbolic={id(idx): (0, 1)}, symbols={"s0": 3, "s1": 12}, rtol=1e-4, atol=1e-5
    )
    # Before 2.13, torch's matmul asks for numbers.
    if torch.__version__ >= "2.13":
        assert all("==" not in guard for guard in recorded.tracer.guards())


def test_conv_batch_norm_training():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 4 * 4, 5),
    )
    recorded = check_against_eager(call, model, torch.randn(2, 3, 8, 8), rtol=1e-4, atol=1e-5)
    mutated = [plan for plan in recorded.traced["inputs"] if plan["mutated_data"]]
    assert len(mutated) == 3  # running mean, running variance, number of batches


def test_conv_inference():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval()
    with torch.no_grad():
        check_against_eager(call, model, torch.randn(2, 3, 8, 8), rtol=1e-4, atol=1e-5)


def test_dropout():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    check_against_eager(call, model, torch.randn(4, 8), seed=3)


def test_cross_entropy():
    model = nn.Linear(8, 5)
    loss = nn.CrossEntropyLoss()
    check_against_eager(lambda m, x, y: loss(m(x), y), model, torch.randn(6, 8), torch.randint(0, 5, (6,)))


def test_autocast():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 2))

    def step(model, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x)

    recorded = check_against_eager(step, model, torch.randn(4, 8), rtol=2e-2, atol=2e-2)
    assert "aten::_to_copy.default" in recorded.ops


def test_transformer_encoder_layer():
    model = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    check_against_eager(call, model, torch.randn(2, 5, 16), rtol=1e-4, atol=1e-5)


def test_lstm():
    model = nn.LSTM(4, 6, num_layers=2)
    check_against_eager(lambda m, x: m(x)[0], model, torch.randn(5, 3, 4), rtol=1e-4, atol=1e-5)
