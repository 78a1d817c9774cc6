"""Learning rates and scales that a compiled step computes from numbers that vary: one region for all of them."""

import math

import pytest
import torch
from judging import run_once, same
from torch import nn

import graphlift


def warm_up(x, k):
    return x * min(1.0, (k + 1) / 30)


def cosine(x, k):
    return x * (0.1 + 0.5 * (1 + math.cos(math.pi * k / 40)))


def decay(x, k):
    return x * 0.95**k


def root(x, k):
    return x * min(k**-0.5, k * 40**-1.5)


def warm_up_and_cosine(x, k):
    lr = 0.1 * k / 5 if k < 5 else 0.05 * (1 + math.cos(math.pi * (k - 5) / 100))
    return x - lr * x.sign()


def sizes(x, k):
    n = x.shape[0]
    return x / math.sqrt(n), x * float(n), x * math.log(n), x / math.sqrt(n / 2), 1 / math.sqrt(n) * x


def attention(x, k):
    scores = x @ x.T / math.sqrt(x.shape[0])
    return scores.softmax(-1) @ x * math.tanh(k / 10)


# program: graphs for many values
PROGRAMS = {warm_up: 2, cosine: 2, decay: 2, root: 2, warm_up_and_cosine: 3, sizes: 2, attention: 2}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_one_region_for_all_values(program, dtype):
    compiled = graphlift.compile(program)
    for k in range(2, 14):

        def make(k=k):
            n = k if program in (sizes, attention) else 4
            return torch.linspace(-1, 1, n * 3, dtype=dtype).reshape(n, 3).requires_grad_(), k

        same(run_once(compiled, make), run_once(program, make))
    counts = graphlift.counters()
    assert counts["graphs"] <= PROGRAMS[program] and counts["graph_breaks"] == 0, counts


def test_a_number_that_is_handed_out_is_pythons_own():
    def program(x, k):
        lr = math.cos(k / 7)
        return x * lr, lr, math.sqrt(k), min(1.0, k / 9), float(k)

    compiled = graphlift.compile(program)
    for k in range(2, 12):
        got, want = compiled(torch.ones(2), k), program(torch.ones(2), k)
        assert got[1:] == want[1:] and [type(v) for v in got] == [type(v) for v in want]
        same(got[0], want[0])
    assert graphlift.counters()["graph_breaks"] == 0


def test_where_python_raises():
    def program(x, k):
        try:
            return x * math.sqrt(k - 5), math.log(k - 5)
        except ValueError as error:
            return x, str(error)

    compiled = graphlift.compile(program)
    for k in (2, 3, 7, 8, 5, 4, 9, 6):
        same(compiled(torch.ones(2), k), program(torch.ones(2), k))


def test_floats_that_vary_keep_their_range():
    def program(x, t):
        try:
            return x * math.cos(t), x * math.tanh(t)
        except ValueError as error:
            return x, str(error)

    compiled = graphlift.compile(program)
    for t in (0.5, 1.5, 2.5, float("inf"), 3.5, float("nan")):
        (a, b), (c, d) = compiled(torch.ones(2), t), program(torch.ones(2), t)
        torch.testing.assert_close(a, c, equal_nan=True)
        assert b == d if isinstance(d, str) else torch.allclose(b, d, equal_nan=True)


def step_with_a_schedule(wrap):
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, k):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * min(1.0, (k + 1) / 5) * 0.5 * (1 + math.cos(math.pi * k / 40))
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = wrap(step)
    losses = [step(torch.randn(4, 3, generator=torch.Generator().manual_seed(k)), k) for k in range(12)]
    return losses, list(model.parameters()), optimizer.param_groups[0]["lr"]


def test_a_training_step_with_a_schedule():
    same(step_with_a_schedule(graphlift.compile), step_with_a_schedule(lambda f: f))
    assert graphlift.counters()["graph_breaks"] == 0
