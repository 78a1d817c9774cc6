"""Programs whose surroundings change between calls: each change is seen at the next call."""

import gc
import sys

import pytest
import surroundings
import surroundings_of_torch  # noqa: F401  (fills the table)
import torch

import graphlift

CASES = surroundings.CASES


THREADS, RECURSION_LIMIT = torch.get_num_threads(), sys.getrecursionlimit()


def restore():
    torch.set_num_threads(THREADS)
    sys.setrecursionlimit(RECURSION_LIMIT)
    gc.enable()
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    surroundings.restore()
    torch.manual_seed(0)


def account(name, first_change, engine):
    restore()
    program, change = CASES[name]()
    function, told = engine(program), []
    for i in range(6):
        try:
            value = function(torch.ones(2))
            told.append((value.detach().tolist(), value.dtype, value.requires_grad))
        except Exception as error:
            told.append(repr(error))
        if i >= first_change:
            try:
                change(i + 1 if i < 3 else 4)
            except Exception as error:
                told.append(repr(error))
    restore()
    return told


@pytest.mark.parametrize("first_change", [0, 1], ids=["at once", "after a hit"])
@pytest.mark.parametrize("name", CASES)
def test_changes_are_seen(name, first_change):
    before = graphlift.counters()["captures"]
    expected = account(name, first_change, lambda program: program)
    assert account(name, first_change, graphlift.compile) == expected
    assert graphlift.counters()["captures"] > before
