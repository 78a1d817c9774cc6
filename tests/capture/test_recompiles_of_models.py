"""How often models are compiled whose batches and sequences vary: twice, and once more for a size of 1."""

import random

import pytest
import torch
from torch import nn

import graphlift


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 4))

    def forward(self, x):
        return self.layers(x)


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(50, 32), nn.Embedding(256, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
        self.head = nn.Linear(32, 50)

    def forward(self, x):
        length = x.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), 1)
        y = self.tokens(x) + self.places(torch.arange(length))
        return self.head(self.layer(y, src_mask=mask))


def shuffled(sizes):
    sizes = list(sizes)
    random.Random(0).shuffle(sizes)
    return sizes


def gradients(module, result):
    module.zero_grad()
    result.sum().backward()
    return [p.grad.clone() for p in module.parameters()]


@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
def test_batches(train):
    torch.manual_seed(0)
    model = Classifier().train(train)
    compiled = graphlift.compile(model.forward, fullgraph=True)
    graphlift.reset()
    for size in shuffled(range(2, 65)):
        x = torch.randn(size, 8)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    assert graphlift.graph_count() == 2
    if not train:  # batch norm refuses one sample while training
        x = torch.randn(1, 8)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
        assert graphlift.graph_count() == 2


@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
def test_sequences(train):
    torch.manual_seed(0)
    model = LanguageModel().train(train)
    compiled = graphlift.compile(model.forward, fullgraph=True)
    graphlift.reset()
    for length in shuffled(range(8, 201))[:40]:
        x = torch.randint(0, 50, (2, length))
        got, expected = compiled(x), model(x)
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)
        if train:
            for mine, eager in zip(gradients(model, got), gradients(model, expected), strict=True):
                torch.testing.assert_close(mine, eager, rtol=1e-3, atol=1e-3)
    assert graphlift.graph_count() == 2


def test_expanded_gradients_of_varying_sizes():
    model = nn.Linear(8, 4)
    compiled = graphlift.compile(lambda x: model(x).sum(), fullgraph=True)
    for size in (5, 6, 7, 2):
        x, y = torch.randn(size, 8, requires_grad=True), torch.randn(size, 8, requires_grad=True)
        with torch.no_grad():
            y.copy_(x)
        got, expected = gradients(model, compiled(x)), gradients(model, model(y))
        torch.testing.assert_close([*got, x.grad], [*expected, y.grad])
