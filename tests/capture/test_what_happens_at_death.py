"""Generators and objects that do something when they die: it happens once per call, never for a given-up attempt."""

import os
import tempfile
import weakref

import pytest
import torch

import graphlift

SEEN = []


def waiting(u):
    try:
        while True:
            u = u + 1
            yield u
    finally:
        SEEN.append(len(SEEN))


def harmless(u):
    while True:
        u = u + 1
        yield u


class Dying:
    def __init__(self, x):
        self.x = x

    def __del__(self):
        SEEN.append("died")


def left_at_the_end(x):
    kept = waiting(x)
    y = next(kept) * 2
    return y + next(kept)


def left_over_a_break(x):
    kept = waiting(x)
    y = next(kept) * 2
    graphlift.graph_break()
    return y + 1


def gone_at_once(x):
    return next(waiting(x)) * 2


def closed(x):
    kept = waiting(x)
    y = next(kept) * 2
    kept.close()
    return y


def kept_in_a_list(x):
    kept = [waiting(x), waiting(x * 2)]
    return sum(next(one) for one in kept)


def delegating(x):
    def outer(u):
        with graphlift_free():
            yield from waiting(u)

    return next(outer(x)) * 2


class graphlift_free:  # noqa: N801
    def __enter__(self):
        SEEN.append("in")

    def __exit__(self, *error):
        SEEN.append("out")


def without_anything_to_do(x):
    kept = harmless(x)
    y = next(kept) * 2
    return y + next(kept)


def raised_with_one_alive(x):
    kept = waiting(x)
    y = next(kept)
    raise KeyError(y.shape[0])


def object_deleted(x):
    one = Dying(x)
    y = one.x * 2
    del one
    return y + 1


def object_left(x):
    one = Dying(x)
    y = one.x * 2
    return y + 1


@pytest.mark.parametrize(
    "program, breaks",
    [
        (left_at_the_end, 1),
        (left_over_a_break, 2),
        (gone_at_once, 0),
        (closed, 0),
        (kept_in_a_list, 2),
        (delegating, 0),
        (without_anything_to_do, 0),
        (raised_with_one_alive, 2),
        (object_deleted, 2),
        (object_left, 1),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_once_per_call(program, breaks):
    accounts = []
    for function in (program, graphlift.compile(program)):
        account = []
        for k in range(3):
            SEEN.clear()
            try:
                value = function(torch.ones(2) * k).tolist()
            except KeyError as error:
                value = error.args
                del error
            account.append((value, list(SEEN)))
        accounts.append(account)
    assert accounts[0] == accounts[1]
    assert graphlift.counters()["graph_breaks"] == breaks, graphlift.counters()


def test_local_variables_live_as_long_as_their_frame():
    def program(x):
        folder = tempfile.TemporaryDirectory()
        path = folder.name
        y = x * 2 + 1
        graphlift.graph_break()
        return y + 1, os.path.exists(path)

    compiled = graphlift.compile(program)
    for _ in range(3):
        y, there = compiled(torch.ones(1))
        assert y.item() == 4 and there
    assert graphlift.graph_count() >= 2


def test_a_tensor_that_no_one_reads_any_more_lives_on():
    def program(x):
        y = x * 2
        alive = weakref.ref(y)
        z = y + 1
        graphlift.graph_break()
        return z * 2, alive() is not None

    compiled = graphlift.compile(program)
    for _ in range(3):
        assert compiled(torch.ones(1))[1]


def test_many_generators_that_die_at_once():
    def program(x):
        total = x
        for k in range(40):
            total = total + next(waiting(x * k)) + sum(u for u, _ in zip(harmless(x), range(2), strict=False))
        return total * len([0 for _ in range(3)])

    SEEN.clear()
    compiled = graphlift.compile(program)
    for k in range(3):
        torch.testing.assert_close(compiled(torch.ones(2) * k), program(torch.ones(2) * k))
    assert len(SEEN) == 40 * 6
