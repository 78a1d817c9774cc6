"""Random generators that the program makes, and states of generators: read, set and forked, between draws."""

import threading

import pytest
import torch
from judging import check, regions, same

import graphlift

SHARED = torch.Generator()


def made(x):
    generator = torch.Generator()
    generator.manual_seed(3)
    return x + torch.rand(2, 3, generator=generator), torch.randn(2, generator=generator), generator.initial_seed()


def begins_as_a_new_one(x):
    a, b = torch.Generator(), torch.Generator(device="cpu")
    return x * torch.rand(2, 3, generator=a) - torch.rand(2, 3, generator=b), a.initial_seed()


def states_of_one_made_here(x):
    generator = torch.Generator().manual_seed(3)
    first = torch.rand(2, generator=generator)
    state = generator.get_state()
    a = torch.rand(2, generator=generator)
    generator.set_state(state)
    return x + 1, a - torch.rand(2, generator=generator), first, state


def the_state_of_torch(x):
    state = torch.get_rng_state()
    a = torch.rand(2)
    torch.set_rng_state(state)
    return x + 1, a - torch.rand(2), torch.rand(2)


def forked(x):
    a = torch.rand(2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        b = torch.rand(2)
    return x + 1, a, b, torch.rand(2)


def state_of_one_from_outside(x):
    state = SHARED.get_state()
    a = torch.rand(2, generator=SHARED)
    SHARED.set_state(state)
    return x * 2, a - torch.rand(2, generator=SHARED)


def a_state_from_outside(x, state):
    generator = torch.Generator()
    generator.set_state(state)
    return x + torch.rand(2, 3, generator=generator)


def in_a_dropout(x):
    generator = torch.Generator().manual_seed(1)
    mask = torch.bernoulli(torch.full_like(x, 0.5), generator=generator)
    return (x * mask).sum(), torch.randperm(5, generator=generator)


def drawn(f, make):
    torch.manual_seed(5)
    SHARED.manual_seed(7)
    results = []
    for _ in range(3):
        args = make()
        result = f(*args)
        gradients = [leaf for leaf in result if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        if gradients:
            sum(g.sum() for g in gradients).backward()
        results += [result, args[0].grad, torch.get_rng_state(), SHARED.get_state()]
    return results


def one():
    return (torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(),)


def with_state():
    return (*one(), torch.Generator().manual_seed(11).get_state())


CAPTURED = {
    made: one,
    begins_as_a_new_one: one,
    states_of_one_made_here: one,
    the_state_of_torch: one,
    forked: one,
    state_of_one_from_outside: one,
    a_state_from_outside: with_state,
    in_a_dropout: one,
}


@pytest.mark.parametrize("backend", ["reference", None])
@pytest.mark.parametrize("program", CAPTURED, ids=lambda f: f.__name__)
def test_one_graph_with_the_states_of_eager(program, backend):
    compiled = graphlift.compile(program, **({"backend": backend} if backend else {}))
    got, want = drawn(compiled, CAPTURED[program]), drawn(program, CAPTURED[program])
    for g, w in zip(got, want, strict=True):
        same(g, w)
    regions(1, 0)


def test_threads_have_generators_of_their_own():
    def program(x):
        generator = torch.Generator().manual_seed(3)
        for _ in range(20):
            x = x + torch.rand(2000, generator=generator)
        return x

    compiled, want, wrong = graphlift.compile(program), program(torch.zeros(2000)), []
    compiled(torch.zeros(2000))

    def work():
        for _ in range(20):
            if not torch.allclose(compiled(torch.zeros(2000)), want):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def handed_out(x):
    generator = torch.Generator().manual_seed(3)
    return x + torch.rand(2, 3, generator=generator), generator


def seeded_by_the_system(x):
    generator = torch.Generator()
    return x * 2, generator.seed() > 0, torch.rand(2, generator=generator).shape


def seed_behind_a_state(x):
    generator, other = torch.Generator(), torch.Generator().manual_seed(9)
    generator.set_state(other.get_state())
    return x * 2, generator.initial_seed()


def of_another_kind(x):
    generator = torch.Generator()
    try:
        generator.set_state(torch.zeros(3))
    except (RuntimeError, TypeError) as error:
        return x * 2, type(error).__name__
    return x


def test_a_generator_that_is_handed_out_goes_on():
    compiled = graphlift.compile(handed_out)
    for _ in range(3):
        (got, g), (want, w) = compiled(*one()), handed_out(*one())
        same(got, want)
        assert torch.equal(torch.rand(3, generator=g), torch.rand(3, generator=w))


@pytest.mark.parametrize(
    "program", [seeded_by_the_system, seed_behind_a_state, of_another_kind], ids=lambda f: f.__name__
)
def test_right_with_breaks(program):
    assert check(program, one)["graph_breaks"] >= 1
