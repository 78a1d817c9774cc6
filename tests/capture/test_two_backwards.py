"""One region's results, differentiated one after the other: allowed and refused as in eager, and freed as in eager."""

import weakref

import pytest
import torch
from judging import same
from torch import nn

import graphlift

W = [torch.linspace(0.5, 1.5, 4).requires_grad_() for _ in range(3)]


def apart(x):
    return (x * W[0]).sin().sum(), (x * W[1]).exp().sum()


def a_trunk_that_saves(x):
    y = (x * W[0]).tanh()
    return (y * W[1]).sum(), (y * y).sum()


def a_trunk_that_saves_nothing(x):
    y = x + W[0]
    return (y * 2).sin().sum(), y.exp().sum()


def one_leads_to_the_other(x):
    logits = (x * W[0]).tanh() * W[1]
    return logits.square().mean(), logits.sum()


def of_three(x):
    y = x * W[0]
    return (y * W[1]).sum(), y.exp().sum(), (x * W[2]).cos().sum()


def that_save_nothing(x):
    return (x + W[0]).sum(), (W[1] - W[0]).sum()


def one_of_a_module_each(x):
    return (x @ torch.outer(W[0], W[0])).relu().sum(), torch.softmax(x * W[1], -1).square().sum()


PROGRAMS = [
    apart,
    a_trunk_that_saves,
    a_trunk_that_saves_nothing,
    one_leads_to_the_other,
    of_three,
    that_save_nothing,
    one_of_a_module_each,
]


def run(f, order, retained=()):
    """Gradients behind each backward, None or not, and the error of the one that raises."""
    for w in W:
        w.grad = None
    x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    results, seen = f(x), []
    for k in order:
        try:
            results[k].backward(retain_graph=k in retained)
        except RuntimeError as error:
            return [*seen, str(error).split(".")[0]]  # how far eager came before it met the freed node is by chance
        seen.append([None if t.grad is None else t.grad.clone() for t in (x, *W)])
    return seen


def orders(count):
    return [(0, 1), (1, 0), (0, 0), (1, 1), (0, 1, 0)] + [(2, 0), (0, 2, 1), (1, 2, 0)] * (count > 2)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("retained", [(), (0,), (1,), (0, 1)], ids=str)
def test_one_after_the_other(program, retained):
    compiled = graphlift.compile(program, fullgraph=True)
    for order in orders(len(program(torch.ones(3, 4)))):
        for _ in range(2):
            same(run(compiled, order, retained), run(program, order, retained))
    assert graphlift.counters()["graphs"] == 1


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_asked_for_one_after_the_other(program):
    compiled = graphlift.compile(program, fullgraph=True)
    got = []
    for f in (compiled, program):
        x, seen = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_(), []
        results = f(x)
        for result in results:
            try:
                seen.append(torch.autograd.grad(result, [x, *W], allow_unused=True))
            except RuntimeError as error:
                seen.append(str(error).split(".")[0])
        got.append(seen)
    same(*got)


def test_both_at_once_and_then_one():
    compiled = graphlift.compile(apart, fullgraph=True)
    for f in (compiled, apart):
        a, b = f(torch.ones(3, 4))
        torch.autograd.backward([a, b])
        with pytest.raises(RuntimeError, match="second time"):
            b.backward()


class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.make = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
        self.judge = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, noise, real):
        made = self.make(noise)
        loss = (
            nn.functional.softplus(self.judge(made.detach())).mean() + nn.functional.softplus(-self.judge(real)).mean()
        )
        return loss, nn.functional.softplus(-self.judge(made)).mean()


def train(gan, forward, same_step):
    makers = torch.optim.SGD(gan.make.parameters(), 0.1)
    judges = torch.optim.SGD(gan.judge.parameters(), 0.1)
    seen = []
    torch.manual_seed(1)
    for _ in range(4):
        judge_loss, make_loss = forward(torch.randn(5, 4), torch.randn(5, 4))
        makers.zero_grad(), judges.zero_grad()
        if same_step:
            make_loss.backward()
            makers.step()
            judges.zero_grad()
            judge_loss.backward()
            judges.step()
        else:
            judge_loss.backward()
            seen.append([p.grad is None for p in gan.parameters()])
            judges.step()
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                make_loss.backward()
        seen.append([judge_loss.detach(), make_loss.detach(), *[p.detach().clone() for p in gan.parameters()]])
    return seen


@pytest.mark.parametrize("same_step", [True, False])
def test_a_generator_and_its_judge(same_step):
    results = []
    for wrap in (lambda f: graphlift.compile(f, fullgraph=True), lambda f: f):
        torch.manual_seed(0)
        gan = Gan()
        results.append(train(gan, wrap(gan), same_step))
    same(*results)
    assert graphlift.counters()["graphs"] == 1


@pytest.mark.parametrize(
    "program, order",
    [(a_trunk_that_saves, (0,)), (a_trunk_that_saves, (1,)), (one_leads_to_the_other, (0,)), (apart, (0, 1))],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_all_is_let_go_with_the_last_possible_backward(program, order):
    compiled = graphlift.compile(program, fullgraph=True)
    for _ in range(2):
        x = torch.linspace(0, 2, 12).reshape(3, 4)
        data = weakref.ref(x)
        results = compiled(x)
        del x
        for k in order:
            assert data() is not None
            results[k].backward()
        assert data() is None


def test_a_loss_and_its_logits_let_all_go():
    big = torch.randn(512, 512, requires_grad=True)

    def program(x):
        logits = (x @ big).tanh() @ big
        return logits.square().mean(), logits

    compiled = graphlift.compile(program, fullgraph=True)
    for _ in range(2):
        x = torch.randn(512, 512)
        data = weakref.ref(x)
        loss, logits = compiled(x)
        del x
        loss.backward()
        assert data() is None
        with pytest.raises(RuntimeError, match="second time"):
            logits.sum().backward()
