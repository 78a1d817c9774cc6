"""torch.while_loop: its branch is a break, as torch.cond's is, and all rounds have one region."""

import pytest
import torch
from judging import run_once, same
from torch._higher_order_ops import associative_scan, while_loop

import graphlift

WEIGHT = torch.linspace(0.5, 1, 3).requires_grad_()


def doubled(x, rounds):
    i, y = while_loop(lambda i, y: i < rounds, lambda i, y: (i + 1, y * 2 + 1), (torch.tensor(0), x * 3))
    return y + 1, i


def until_it_is_large(x, rounds):
    def large(y):
        return y.abs().sum() < 100 * rounds

    (y,) = while_loop(large, lambda y: (y * 1.5 + 0.1,), (x + 1,))
    return y * 2


def in_lists(x, rounds):
    result = while_loop(lambda i, y: i < rounds, lambda i, y: [i + 1, y.sin()], [torch.tensor(0), x])
    return type(result).__name__, result[1] + 1


def with_gradients(x, rounds):
    _, y = while_loop(lambda i, y: i < rounds, lambda i, y: (i + 1, y * WEIGHT), (torch.tensor(0), x * 1))
    return y.sum()


def plain():
    return torch.linspace(-1, 1, 6).reshape(2, 3), torch.tensor(4)


@pytest.mark.parametrize("program", [doubled, until_it_is_large, in_lists, with_gradients], ids=lambda f: f.__name__)
def test_one_region_for_all_rounds(program):
    compiled, regions = graphlift.compile(program), []
    for rounds in (3, 3, 6, 9, 4):

        def make(rounds=rounds):
            return plain()[0], torch.tensor(rounds)

        got, want = run_once(compiled, make), run_once(program, make)
        same(got, want)
        regions.append(graphlift.counters()["regions"])
    assert regions[1:] == regions[1:2] * 4, f"rounds are compiled again: {regions}"
    assert graphlift.counters()["graphs"] <= 4 and graphlift.counters()["given_up"] == 0


def test_no_round_at_all():
    compiled = graphlift.compile(doubled)
    x, _ = plain()
    same(compiled(x, torch.tensor(0)), doubled(x, torch.tensor(0)))

    def itself(x):
        return while_loop(lambda x: x.sum() < -100, lambda x: (x - 1,), (x,))[0]

    for f in (itself, graphlift.compile(itself)):
        assert f(x) is not x and f(x).data_ptr() != x.data_ptr()


def an_alias(x):
    return while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y), (torch.tensor(0), x * 1))[1]


def another_shape(x):
    return while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, torch.cat([y, y])), (torch.tensor(0), x * 1))[1]


def no_scalar(x):
    return while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * 2), (torch.zeros(1), x * 1))[1]


@pytest.mark.parametrize("program", [an_alias, another_shape, no_scalar], ids=lambda f: f.__name__)
def test_what_torch_refuses(program):
    compiled = graphlift.compile(program)
    for _ in range(2):
        with pytest.raises(Exception) as want:
            program(plain()[0])
        with pytest.raises(want.type):
            compiled(plain()[0])


def test_ints_are_left_to_torch():
    def program(x):
        i, y = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, x * 1))
        return y + 1, i

    same(graphlift.compile(program)(plain()[0]), program(plain()[0]))


def scanned(x):
    decay = torch.sigmoid(x)
    _, y = associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (decay, x * 2), 1, combine_mode="generic")
    return y.sum(0)


def test_an_associative_scan_is_one_graph():
    compiled = graphlift.compile(scanned)
    for rows in (3, 3, 5):
        x = torch.linspace(-1, 1, rows * 4).reshape(rows, 4)
        results = []
        for f in (compiled, scanned):
            leaf = x.clone().requires_grad_()
            f(leaf).square().sum().backward()
            results.append((f(x), leaf.grad))
        torch.testing.assert_close(*results)
    counts = graphlift.counters()
    assert counts["graph_breaks"] == 0 and counts["hits"] > 0 and counts["graphs"] <= 4, counts
