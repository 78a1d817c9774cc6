"""Branches on a tensor's value of which one side only raises: one graph, which stops for the program to raise itself.

PYTEST_DONT_REWRITE: what is asserted here is what the tests are about.
"""

import pytest
import torch
from judging import same

import graphlift

torch.manual_seed(0)
GOOD, BAD = torch.linspace(0.1, 1, 6), torch.linspace(-1, 1, 6)


def asserted(x):
    y = x * 2
    assert (y > 0).all(), f"not above zero, of {tuple(x.shape)}"
    return y.sin()


def raised(x):
    if (x < 0).any():
        raise ValueError("below zero")
    return x.sqrt()


def both_kinds(x):
    assert torch.isfinite(x).all() and (x > 0).all()
    if not (x < 5).all():
        raise OverflowError
    return x.log()


def a_number(x):
    if x.min() < 0:
        raise ValueError(f"{x.min().item():.1f}")
    return x + 1


def in_calls(x):
    return raised(asserted(x).abs()) + both_kinds(x)


def in_a_loop(x):
    for _ in range(3):
        x = x * 0.5
        assert (x > 0).all()
    return x


def caught(x):
    try:
        return raised(x)
    except ValueError as error:
        return x.abs() * len(str(error))


def in_place_on_its_own(x):
    y = x.clone()
    y[0] += 1
    assert (y > 0).all()
    y.mul_(2)
    return y


PROGRAMS = [asserted, raised, both_kinds, a_number, in_calls, in_a_loop, caught, in_place_on_its_own]


def told(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_one_graph(program):
    compiled = graphlift.compile(program, fullgraph=True)
    for x in (GOOD, BAD, GOOD * 2, BAD, GOOD):
        same(told(program, x), told(compiled, x))
    assert graphlift.counters()["graph_breaks"] == 0
    assert graphlift.graph_count() == 1
    assert graphlift.counters()["hits"] > 0


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients(program):
    compiled, grads = graphlift.compile(program, fullgraph=True), []
    for function in (program, compiled):
        x = GOOD.clone().requires_grad_()
        function(x).sum().backward()
        grads.append(x.grad)
    same(*grads)
    assert graphlift.graph_count() == 1


@pytest.mark.parametrize("x", [GOOD, BAD], ids=["holds", "fails"])
def test_the_first_call_decides_nothing(x):
    compiled = graphlift.compile(asserted)
    for value in (x, GOOD, BAD):
        same(told(asserted, value), told(compiled, value))


def test_what_comes_before_is_shown_once(capsys):
    seen = []

    def program(x):
        print("begins")
        seen.append(len(seen))
        assert (x > 0).all()
        print("ends")
        return x * 2

    outcomes = []
    for function in (program, graphlift.compile(program)):
        seen.clear()
        results = [told(function, x) for x in (GOOD, BAD, GOOD)]
        outcomes.append((results, list(seen), capsys.readouterr().out))
    same(*outcomes)


@pytest.mark.parametrize("before", [True, False])
def test_memory_that_is_written(before):
    """Where the region writes to memory from outside, the branch is a break: the graph can't be left in the middle."""

    def program(x, state):
        if before:
            state.add_(1)
        assert (x > 0).all()
        if not before:
            state.add_(1)
        return x * state

    compiled = graphlift.compile(program)
    states = [torch.zeros(6), torch.zeros(6)]
    for x in (GOOD, BAD, GOOD):
        same(told(program, x, states[0]), told(compiled, x, states[1]))
        same(*states)
    assert graphlift.counters()["graph_breaks"] > 0


def test_random_numbers_are_drawn_once():
    def program(x):
        noise = torch.rand(6)
        assert (x + noise > 0).all()
        return noise + torch.randn(6) * x

    compiled, outcomes = graphlift.compile(program, fullgraph=True), []
    for function in (program, compiled):
        torch.manual_seed(5)
        outcomes.append([told(function, x) for x in (GOOD, BAD, BAD - 5, GOOD, BAD)] + [torch.rand(2)])
    same(*outcomes)
    assert graphlift.graph_count() == 1


def test_seeding():
    def program(x):
        before = torch.rand(2)
        torch.manual_seed(9)
        noise = torch.rand(6)
        assert (x + noise > 0).all()
        return before, noise + torch.randn(6) * x

    compiled, outcomes = graphlift.compile(program, fullgraph=True), []
    for function in (program, compiled):
        torch.manual_seed(5)
        outcomes.append([told(function, x) for x in (GOOD, BAD - 5, GOOD, BAD - 5)] + [torch.rand(2)])
    same(*outcomes)
    assert graphlift.graph_count() == 1


def test_generators_from_outside():
    def program(x, generator):
        noise = torch.rand(6, generator=generator)
        assert (x > 0).all()
        return noise * x

    outcomes = []
    for function in (program, graphlift.compile(program)):
        generator = torch.Generator().manual_seed(3)
        outcomes.append([told(function, x, generator) for x in (GOOD, BAD, GOOD)] + [generator.get_state()])
    same(*outcomes)


def test_expectations_that_fail_often_are_given_up():
    compiled = graphlift.compile(caught)
    for _ in range(4):
        assert graphlift.counters()["graph_breaks"] == 0
        same(caught(BAD), compiled(BAD))
    same(caught(BAD), compiled(BAD))
    assert graphlift.counters()["graph_breaks"] > 0
    hits = graphlift.counters()["hits"]
    same(caught(BAD), compiled(BAD))
    same(caught(GOOD), compiled(GOOD))
    assert graphlift.counters()["hits"] > hits


def both_raise(x):
    if (x > 0).all():
        raise ValueError("above")
    raise KeyError("below")


def neither_raises(x):
    return x + 1 if (x > 0).all() else x - 1


def many_elements(x):
    assert x > 0
    return x


def a_choice_before_it(x):
    if (x < 0).any():
        raise ValueError("some" if (x > 0).any() else "all")
    return x + 1


@pytest.mark.parametrize("program", [both_raise, neither_raises, many_elements, a_choice_before_it])
def test_other_branches_are_breaks(program):
    compiled = graphlift.compile(program)
    for x in (GOOD, BAD, -GOOD):
        same(told(program, x), told(compiled, x))
    assert graphlift.counters()["graph_breaks"] > 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_foreign_backends_break(backend):
    compiled = graphlift.compile(asserted, backend=backend)
    for x in (GOOD, BAD, GOOD):
        same(told(asserted, x), told(compiled, x))


def test_transforms():
    compiled = graphlift.compile(torch.func.vmap(lambda row: raised(row) * 2))
    rows = GOOD.expand(3, 6)
    expected = told(torch.func.vmap(lambda row: raised(row) * 2), rows)
    same(expected[0], told(compiled, rows)[0])


def test_under_checkpoint():
    def program(x):
        return torch.utils.checkpoint.checkpoint(raised, x * 2, use_reentrant=False).sum()

    compiled = graphlift.compile(program)
    for x in (GOOD, BAD, GOOD):
        same(told(program, x), told(compiled, x))


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(6, 4)

    def forward(self, x):
        chosen = torch.distributions.Categorical(logits=self.layer(x))
        action = chosen.sample()
        spread = torch.distributions.Normal(self.layer(x), x.exp().mean())
        value = spread.rsample()
        return chosen.log_prob(action) + spread.log_prob(value).sum() + chosen.entropy(), action


def test_distributions_are_validated_in_one_graph(monkeypatch):
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)  # torch.compile turns it off
    policy, outcomes = Policy(), []
    compiled = graphlift.compile(policy, fullgraph=True)
    for model in (policy, compiled):
        torch.manual_seed(1)
        policy.zero_grad()
        results = [told(model, x) for x in (GOOD, BAD, GOOD * float("nan"), BAD)]
        results[0][0].sum().backward()
        outcomes.append((results, [p.grad.clone() for p in policy.parameters()]))
    torch.testing.assert_close(outcomes[0][1], outcomes[1][1])
    for mine, eager in zip(outcomes[1][0], outcomes[0][0], strict=True):
        assert mine == eager if isinstance(eager[0], type) else not torch.testing.assert_close(mine, eager)
    assert outcomes[0][0][2][0] is ValueError
    assert graphlift.graph_count() <= 2
