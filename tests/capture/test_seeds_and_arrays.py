"""Seeding and random generators inside of a region, and numpy arrays that become tensors: values, states, counts."""

import numpy as np
import pytest
import torch
from judging import regions

import graphlift

SHARED = torch.Generator()


def seeded(x):
    torch.manual_seed(3)
    return x + torch.randn(3)


def seeded_between_draws(x):
    before = torch.rand(3)
    torch.manual_seed(3)
    first = torch.randn(3)
    second = torch.nn.functional.dropout(x, 0.5)
    torch.manual_seed(3)
    return before, first - torch.randn(3), second


def seeded_for_nothing(x):
    torch.manual_seed(7)
    return 5


def a_seed_that_varies(x, n=[0]):  # noqa: B006
    n[0] += 1
    torch.manual_seed(n[0])
    return x * torch.rand(3)


def from_a_generator(x):
    return x + torch.randn(3, generator=SHARED) * torch.rand(3)


def in_place_from_a_generator(x):
    y = torch.empty(3, 2).normal_(generator=SHARED)
    return x + y.t().contiguous()[0] + torch.randperm(3, generator=SHARED)


def a_generator_seeded(x):
    a = torch.rand(3, generator=SHARED)
    SHARED.manual_seed(11)
    b = torch.rand(3, generator=SHARED)
    SHARED.manual_seed(11)
    return x * a, b - torch.rand(3, generator=SHARED)


def states(program, calls=3):
    """Results of calls, and the states of both generators behind each."""
    torch.manual_seed(0)
    SHARED.manual_seed(1)
    if program.__defaults__:
        program.__defaults__[0][0] = 0
    return run(program, calls)


def run(program, calls):
    found = []
    for _ in range(calls):
        result = program(torch.ones(3))
        found += [*(result if isinstance(result, tuple) else [torch.as_tensor(result)])]
        found += [torch.get_rng_state(), SHARED.get_state()]
    return found


def equal(got, want):
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w)  # of states exactly: they are integers


ONE_GRAPH = [
    seeded,
    seeded_between_draws,
    seeded_for_nothing,
    from_a_generator,
    in_place_from_a_generator,
    a_generator_seeded,
]


@pytest.mark.parametrize("backend", ["reference", None])
@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda f: f.__name__)
def test_one_graph_with_the_state_of_eager(program, backend):
    want = states(program)
    compiled = graphlift.compile(program, **({"backend": backend} if backend else {}))
    torch.manual_seed(0)
    SHARED.manual_seed(1)
    equal(run(compiled, 3), want)
    regions(1, 0)


def test_seeds_that_vary():
    want = states(a_seed_that_varies, 4)
    compiled = graphlift.compile(a_seed_that_varies)
    torch.manual_seed(0)
    SHARED.manual_seed(1)
    a_seed_that_varies.__defaults__[0][0] = 0
    equal(run(compiled, 4), want)
    assert graphlift.counters()["graphs"] >= 1 and graphlift.counters()["graph_breaks"] == 0


def test_gradients_through_a_seeded_dropout():
    def program(x):
        torch.manual_seed(5)
        return torch.nn.functional.dropout(x * 2, 0.5)

    def gradient(f):
        x = torch.ones(64, requires_grad=True)
        f(x).sum().backward()
        return x.grad

    assert torch.equal(gradient(graphlift.compile(program)), gradient(program))
    regions(1, 0)


def test_a_generator_that_is_an_argument():
    def program(x, g):
        return x + torch.randn(3, generator=g)

    compiled = graphlift.compile(program)
    g, h = torch.Generator().manual_seed(2), torch.Generator().manual_seed(2)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(3), g), program(torch.ones(3), h))
        assert torch.equal(g.get_state(), h.get_state())
    regions(1, 0)
    for seed in range(4):  # another one in each call: drawn from for real
        g, h = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
        assert torch.equal(compiled(torch.ones(3), g), program(torch.ones(3), h))
        assert torch.equal(g.get_state(), h.get_state())
    regions(2, 1)


def test_a_foreign_backend_gets_the_generator():
    targets = []

    def backend(gm, inputs):
        targets.extend(str(node.target) for node in gm.graph.nodes)
        return gm.forward

    def program(x):
        torch.manual_seed(2)
        return x + torch.rand(3, generator=SHARED) + torch.rand(3)

    want = states(program)
    compiled = graphlift.compile(program, backend=backend)
    torch.manual_seed(0)
    SHARED.manual_seed(1)
    equal(run(compiled, 3), want)
    assert any("manual_seed" in target for target in targets)


# --- arrays of numpy


ARRAY = np.arange(3, dtype=np.float32)


def an_array_from_outside(x, a):
    return x + torch.from_numpy(ARRAY)


def an_array_as_argument(x, a):
    return x * torch.from_numpy(a) + torch.as_tensor(ARRAY)


def a_copy(x, a):
    t = torch.tensor(a)
    t += 1
    return x * t


def written_into(x, a):
    torch.from_numpy(a).mul_(2)
    return x + 1


def handed_out(x, a):
    t = torch.from_numpy(a)
    return t, t * x


def an_array_at_the_end(x, a):
    return (torch.from_numpy(a) * x).numpy()


# program: (graphs, breaks)
ARRAYS = {
    an_array_from_outside: (1, 0),
    an_array_as_argument: (1, 0),
    a_copy: (1, 0),
    written_into: (1, 0),
    handed_out: (1, 0),
    an_array_at_the_end: (1, 0),
}


@pytest.mark.parametrize("program", ARRAYS, ids=lambda f: f.__name__)
def test_arrays_in_and_out(program):
    compiled = graphlift.compile(program)
    for k in range(3):
        a, b = (np.arange(3, dtype=np.float32) + k for _ in range(2))
        want, got = program(torch.ones(3), a), compiled(torch.ones(3), b)
        assert type(want) is type(got)
        for w, g in zip(want, got, strict=True):
            np.testing.assert_array_equal(np.asarray(w), np.asarray(g))
        np.testing.assert_array_equal(a, b)
        if program is handed_out:  # it lies on the array's memory
            got[0][0] = 50
            assert b[0] == 50
    regions(*ARRAYS[program])


def test_arrays_of_other_sizes_and_kinds():
    def program(x, a):
        return x.sum() + torch.from_numpy(a).sum()

    compiled = graphlift.compile(program)
    read_only = np.arange(4.0)
    read_only.flags.writeable = False
    for a in (np.arange(3.0), np.arange(5.0), np.arange(4), np.arange(6.0)[::2], np.ones((2, 2))):
        torch.testing.assert_close(compiled(torch.ones(3), a), program(torch.ones(3), a), rtol=0, atol=0)
    with pytest.warns(UserWarning, match="not writable"):
        compiled(torch.ones(3), read_only)
    with pytest.raises(ValueError, match="negative"):
        compiled(torch.ones(3), np.arange(4.0)[::-1])
    assert graphlift.counters()["graphs"] >= 3
