"""functools.lru_cache of functions that only compute: the region fills the cache as eager's calls do."""

import functools

import pytest
import torch
from judging import regions, same

import graphlift

FACTOR = 2


def caches():
    """Fresh caches, and a program on them."""

    @functools.lru_cache(maxsize=None)
    def doubled(n):
        return n * FACTOR

    @functools.lru_cache(maxsize=2)
    def bounded(n, m=1, *, k=0):
        return (n, m, "text", k)

    @functools.lru_cache
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return doubled, bounded, fib


def one_entry(doubled, bounded, fib, x, k):
    return x * doubled(5) + doubled(5)


def keywords(doubled, bounded, fib, x, k):
    return x + bounded(1)[0] + bounded(1, k=3)[3], bounded(n=2, m=4), bounded(1)


def evicts(doubled, bounded, fib, x, k):
    return x + 1, [bounded(n) for n in (1, 2, 3, 1, 2)]


def recursive(doubled, bounded, fib, x, k):
    return x * fib(12)


def in_each_other(doubled, bounded, fib, x, k):
    outer = sum(doubled(bounded(n)[0]) for n in range(3))
    return x * outer


def of_what_varies(doubled, bounded, fib, x, k):
    return x * doubled(k) + doubled(k) + doubled(k + 1), doubled(n=k)


def evicts_what_varies(doubled, bounded, fib, x, k):
    return x + 1, bounded(k), bounded(k, k=2)[3], bounded(2, k), bounded(k)


def nested_of_what_varies(doubled, bounded, fib, x, k):
    return x * doubled(bounded(k)[0]), doubled(doubled(k))


PROGRAMS = [
    one_entry,
    keywords,
    evicts,
    recursive,
    in_each_other,
    of_what_varies,
    evicts_what_varies,
    nested_of_what_varies,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_counted_and_kept_as_in_eager(program):
    ours, eagers = caches(), caches()
    compiled = graphlift.compile(lambda x, k: program(*ours, x, k))
    for k in (3, 3, 4, 5, 6):  # where k varies it is captured again, with caches that have answers
        same(compiled(torch.ones(2), k), program(*eagers, torch.ones(2), k))
        assert [c.cache_info() for c in ours] == [c.cache_info() for c in eagers]
    assert graphlift.counters()["graph_breaks"] == 0 and graphlift.counters()["hits"] >= 2
    for cache, eager in zip(ours, eagers, strict=True):  # the very answers
        for n in range(4):
            assert cache(n) == eager(n)
        assert cache.cache_info() == eager.cache_info()


def test_one_region_fills_it_and_hits_it():
    doubled, *_ = caches()
    compiled = graphlift.compile(lambda x: x * doubled(5))
    for _ in range(4):
        compiled(torch.ones(2))
    assert doubled.cache_info()[:2] == (3, 1)
    regions(1, 0)


def test_the_answer_is_that_of_the_first_call():
    """What the cache holds counts, whatever the function would say by now."""
    global FACTOR

    def run(wrap):
        global FACTOR
        FACTOR = 2
        doubled, *_ = caches()
        program, results = wrap(lambda x: x * doubled(5)), []
        for factor in (2, 3, 2):
            FACTOR = factor
            results.append(program(torch.ones(2)))
        doubled.cache_clear()
        FACTOR = 3
        results.append(program(torch.ones(2)))
        FACTOR = 2
        results.append(program(torch.ones(2)))
        results.append(doubled(5))
        FACTOR = 2
        return results, doubled.cache_info()

    (got, info), (want, expected) = run(graphlift.compile), run(lambda f: f)
    same(got, want)
    assert info == expected
    assert graphlift.counters()["graph_breaks"] == 0


def test_a_change_behind_the_call_does_not_count():
    state = {"factor": 2}

    @functools.lru_cache
    def scaled(n):
        return n * state["factor"]

    def program(x):
        y = x * scaled(3)
        state["factor"] = 7
        return y + scaled(3)

    same(graphlift.compile(program)(torch.ones(2)), torch.full((2,), 12.0))
    assert scaled(3) == 6 and state["factor"] == 7


def test_what_is_no_constant_is_not_kept():
    @functools.lru_cache
    def listed(n):
        return [n]

    compiled = graphlift.compile(lambda x: x * listed(3)[0])
    for _ in range(3):
        assert compiled(torch.ones(2)).tolist() == [3.0, 3.0]
    assert listed.cache_info().currsize == 0


def test_the_function_of_the_cache_is_its_own_behind_it():
    doubled, bounded, _ = caches()
    compiled = graphlift.compile(lambda x: (x * doubled(5), bounded(1)))
    compiled(torch.ones(2))
    assert doubled(7) == 14 and bounded(9) == (9, 1, "text", 0)
