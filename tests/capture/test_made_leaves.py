"""Leaves that a region makes with requires_grad_() and hands out: gradients reach them through the region's node."""

import pytest
import torch
from judging import regions

import graphlift


def cloned(x):
    y = x.clone().requires_grad_()
    return y, (y**3).sum()


def kept_inside(x):
    y = x.clone().requires_grad_()
    return (y**3).sum()


def made(x):
    y = torch.ones(3, requires_grad=True)
    return y, (y * x).sum()


def view_of_input(x):
    y = x.detach().requires_grad_()
    return y, (y * x).sum()


def before_and_after(x):
    y = x.detach()
    z = y * 2
    y.requires_grad_()
    return z, y, y * 3


def view_of_output(x):
    a = x * 2
    b = a.detach()
    b.requires_grad_()
    return b * a, b, a


def two_leaves(x):
    a, b = x.detach().clone().requires_grad_(), torch.full_like(x, 2.0).requires_grad_()
    return a * b, b, a, (b * x).exp()


PROGRAMS = [cloned, kept_inside, made, view_of_input, before_and_after, view_of_output, two_leaves]


def facts(function, wants_gradient, backwards):
    x = torch.linspace(-1, 1, 3).requires_grad_(wants_gradient)
    results = function(x)
    results = results if isinstance(results, tuple) else (results,)
    told = [(t.requires_grad, t.is_leaf, t.grad_fn is None) for t in results]
    for _ in range(backwards):
        sum((t.exp() * t).sum() for t in results).backward(retain_graph=True)
    leaves = [x, *(t for t in results if t.is_leaf)]
    return told, [None if t.grad is None else t.grad.clone() for t in leaves]


@pytest.mark.parametrize("backwards", [1, 2])
@pytest.mark.parametrize("wants_gradient", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_of_leaves(program, wants_gradient, backwards):
    compiled = graphlift.compile(program, fullgraph=True)
    before = graphlift.graph_count()
    for _ in range(3):
        told, gradients = facts(program, wants_gradient, backwards)
        got_told, got = facts(compiled, wants_gradient, backwards)
        assert got_told == told
        for mine, eager in zip(got, gradients, strict=True):
            assert (mine is None) == (eager is None)
            if eager is not None:
                torch.testing.assert_close(mine, eager)
    assert graphlift.graph_count() == before + 1


def test_a_gradient_asked_of_the_leaf_itself():
    y, z = graphlift.compile(cloned)(torch.arange(3.0))
    (gradient,) = torch.autograd.grad(z, y)
    torch.testing.assert_close(gradient, 3 * y.detach() ** 2)
    assert y.grad is None


def written_through_a_detached_alias(a, b):
    alias = b.detach()
    alias[:, 1] = a[:, 0]
    return alias


def written_alias_of_an_output(a, b):
    base = b * 2
    alias = base.detach()
    alias.mul_(a)
    return base, alias


def written_alias_that_is_stored(a, b, table=None):
    table = {}
    alias = b.detach()
    try:
        table.update(base=b, alias=alias)
        raise ValueError(3)
    except ValueError:
        alias[:, 1] = a[:, 0]
    return table["alias"], table["base"]


# An alias of an input that gets a history can't be recorded.
WRITTEN = {
    written_through_a_detached_alias: (2, 1),
    written_alias_of_an_output: (1, 0),
    written_alias_that_is_stored: (3, 3),
}


@pytest.mark.parametrize("program", WRITTEN, ids=lambda program: program.__name__)
def test_detached_aliases_that_get_a_history(program):
    def account(function):
        a, b = torch.arange(4.0).view(2, 2).requires_grad_(), torch.ones(2, 2)
        results = function(a, b)
        results = results if isinstance(results, tuple) else (results,)
        sum(t.exp().sum() for t in results).backward()
        return [(t.requires_grad, t.is_leaf, t.detach().tolist()) for t in (*results, b)], a.grad.tolist()

    compiled = graphlift.compile(program)
    for _ in range(2):
        assert account(compiled) == account(program)
    regions(*WRITTEN[program])
