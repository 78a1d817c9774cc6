"""Programs whose surroundings change between calls: each change is seen at the next call."""

import gc
import sys
import types

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


# --- modules that are imported inside


def imports_inside(x):
    import graphlift_test_part

    return x * graphlift_test_part.value


def imports_of_a_package(x):
    import graphlift_test_part.inner

    return x * graphlift_test_part.inner.value


@pytest.mark.parametrize("program", [imports_inside, imports_of_a_package], ids=lambda f: f.__name__)
def test_another_module_of_the_name_is_imported(program, monkeypatch):
    def put(value):
        part, inner = types.ModuleType("graphlift_test_part"), types.ModuleType("graphlift_test_part.inner")
        part.value = inner.value = value
        part.inner = inner
        monkeypatch.setitem(sys.modules, "graphlift_test_part", part)
        monkeypatch.setitem(sys.modules, "graphlift_test_part.inner", inner)

    graphs = graphlift.graph_count()
    compiled = graphlift.compile(program)
    for value in (2, 3, 3, 5):
        put(value)
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), float(value)))
    assert graphlift.graph_count() > graphs
    monkeypatch.setitem(sys.modules, "graphlift_test_part", None)
    monkeypatch.setitem(sys.modules, "graphlift_test_part.inner", None)
    with pytest.raises(ModuleNotFoundError):
        program(torch.ones(2))
    with pytest.raises(ModuleNotFoundError):
        compiled(torch.ones(2))
