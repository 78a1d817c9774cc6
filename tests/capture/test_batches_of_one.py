"""A size that varies may be 1 as well: batches of 1 share the graph of the others wherever nothing depends on it.

Where something does (broadcasting, squeeze, layouts that a size of 1 changes), that it is 1, or is not, is guarded.
"""

import random

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import graphlift


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.last = nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.Linear(8, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        return self.last(F.adaptive_avg_pool2d(F.relu(self.second(x)), 1).flatten(1))


def perceptron():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Dropout(0.0), nn.Linear(32, 8))


def encoder():
    return nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)


MODELS = {perceptron: (16,), Convolutions: (3, 12, 12), encoder: (7, 32)}


def infer(model, x):
    with torch.no_grad():
        return model(x)


def train(model, x):
    for p in model.parameters():
        p.grad = None
    result = model(x)
    (result**2).mean().backward()
    return result, [p.grad for p in model.parameters()]


@pytest.mark.parametrize("step", [infer, train], ids=lambda f: f.__name__)
@pytest.mark.parametrize("make", MODELS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("place", [0, 1, 2, None])
def test_batches_in_any_order_are_two_graphs(make, step, place):
    models = [make(), make()]
    models[1].load_state_dict(models[0].state_dict())
    for model in models:
        model.train(step is train)
    batches = random.Random(3).sample(range(1, 65), 64)
    batches = [n for n in batches if n != 1][:6] + [64, 2]
    batches.insert(len(batches) if place is None else place, 1)
    graphlift.reset()
    compiled = graphlift.compile(step)
    for n in [*batches, 1, 2]:
        x = torch.randn(n, *MODELS[make])
        torch.testing.assert_close(compiled(models[1], x), step(models[0], x), rtol=2e-4, atol=2e-5)
    counts = graphlift.counters()
    assert counts["graphs"] == 2 and counts["graph_breaks"] == 0 and counts["hits"] >= 7, counts


def shown(tensor):
    base = tensor._base
    return tensor.shape, tensor.stride(), tensor.is_contiguous(), base is not None and base.shape


def passed_through(x):
    return x.reshape(x.shape[0], -1), x.sum(1), x.softmax(-1), x * 2, x.mean(), x.flatten(), x.unsqueeze(1), x[..., :2]


def transposed(x):
    return x.t(), x.t() + 1, (x.t() * 2).t(), x.t().contiguous(), x.t().clone()


def squeezed(x):
    return x.squeeze(), x.squeeze(0) + 1, x.unsqueeze(0).squeeze()


def broadcast(x):
    n = x.shape[0]
    return (
        x + torch.ones(n, 1),
        x[:1] + x,
        torch.ones(1, 4).expand(n, 4),
        torch.ones(4).expand(n, -1) * x,
        x[:, :1] + x.t()[:1].t(),
    )


def expanded_alone(x):
    return torch.ones(1, 4).expand(x.shape[0], 4), torch.ones(1, 4).expand(x.shape[0], 4).contiguous()


def joined(x):
    return torch.cat([x.new_zeros(1, 4).expand(x.shape[0], 4), x], 1), torch.stack([x, x]), torch.cat([x, x[:1]])


def of_statistics(x):
    return x.var(0, correction=0), x.std(1), x.amax(0), x.argmax(0), x.cumsum(0), x.sort(0)[0], F.normalize(x, dim=0)


def decided(x):
    return x * 2 if x.shape[0] == 1 else x * 3 if x.shape[0] > 3 else x * 4


def permuted_images(x):
    images = x.reshape(x.shape[0], 1, 2, 2).expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)
    return images + 1, images * torch.ones(1, 3, 1, 1), F.avg_pool2d(images, 2), images.is_contiguous()


def of_losses(x):
    target = torch.zeros(x.shape[0], dtype=torch.long)
    return F.cross_entropy(x, target), F.cross_entropy(x, target, reduction="none").sum(), F.mse_loss(x, x * 2)


PROGRAMS = [
    passed_through,
    transposed,
    squeezed,
    broadcast,
    expanded_alone,
    joined,
    of_statistics,
    decided,
    permuted_images,
    of_losses,
]
ONE_FOR_ALL = {passed_through, joined, of_losses}


def look(value):
    if isinstance(value, torch.Tensor):
        return shown(value)
    return [look(item) for item in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("sizes", [(5, 7, 1, 4, 1), (5, 1, 7, 4), (1, 5, 1, 7)])
@pytest.mark.parametrize("backend", ["reference", "native"])
def test_what_the_program_sees_is_eagers(program, sizes, backend):
    graphlift.reset()
    compiled = graphlift.compile(program, backend=backend)
    for n in sizes:
        x = torch.randn(n, 4)
        got, want = compiled(x), program(x)
        torch.testing.assert_close(got, want, equal_nan=True)
        assert look(got) == look(want), (n, look(got), look(want))
    if program in ONE_FOR_ALL:
        assert graphlift.counters()["graphs"] == 2


def test_a_batch_of_one_that_lies_otherwise():
    graphlift.reset()
    compiled = graphlift.compile(lambda x: (x + 1, x.view(-1), x[:]), dynamic=True)
    images = torch.randn(5, 4)
    for x in (images, images[:3], images[2:3], torch.randn(4, 5).t()[:1], torch.randn(4, 1).t()):
        got, want = compiled(x), (x + 1, x.reshape(-1), x[:])
        torch.testing.assert_close(got, want)
        assert look(got)[0] == look(want)[0] and look(got)[2][:3] == look(want)[2][:3]


def test_a_write_into_what_is_expanded_is_refused_as_in_eager():
    def program(x):
        y = torch.ones(1, 4).expand(x.shape[0], 4)
        y.add_(1)
        return y * x

    graphlift.reset()
    compiled = graphlift.compile(program)
    for n in (5, 1, 7, 1):
        x = torch.randn(n, 4)
        if n == 1:
            torch.testing.assert_close(compiled(x), program(x))
            continue
        for f in (compiled, program):
            with pytest.raises(RuntimeError, match="single memory location"):
                f(x)


def test_marked_dims_of_size_one():
    def program(x):
        return x.softmax(1) * 2

    graphlift.reset()
    compiled = graphlift.compile(program)
    for n in (1, 5, 7, 1):
        x = torch.randn(n, 4)
        graphlift.mark_dynamic(x, 0)
        torch.testing.assert_close(compiled(x), program(x))
    assert graphlift.graph_count() == 1


def test_numbers_that_may_be_one():
    def program(x, n):
        return x * n + x[:n].sum()

    graphlift.reset()
    compiled = graphlift.compile(program)
    for n in (3, 1, 4, 2, 5, 1):
        x = torch.randn(6)
        torch.testing.assert_close(compiled(x, n), program(x, n))
    assert graphlift.graph_count() <= 3


def test_a_language_model_over_lengths():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(50, 32), nn.Embedding(256, 32)
            self.layer, self.head = encoder(), nn.Linear(32, 50)

        def forward(self, ids):
            n = ids.shape[1]
            mask = torch.full((n, n), float("-inf")).triu(1)
            return self.head(self.layer(self.words(ids) + self.places(torch.arange(n)), src_mask=mask))

    model = Model().eval()
    graphlift.reset()
    compiled = graphlift.compile(infer)
    for n in random.Random(1).sample(range(8, 201), 10):
        ids = torch.randint(50, (2, n))
        torch.testing.assert_close(compiled(model, ids), infer(model, ids), rtol=2e-4, atol=2e-5)
    assert graphlift.graph_count() <= 3
