"""Arguments of compile: right ones are taken, wrong ones answered with the right ones at once."""

import pytest
import torch

import graphlift


def f(x):
    return x + 1


@pytest.mark.parametrize("mode", [None, *graphlift.list_modes()])
def test_modes(mode):
    assert graphlift.compile(f, mode=mode)(torch.ones(1)).item() == 2


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_dynamic(dynamic):
    assert graphlift.compile(f, dynamic=dynamic)(torch.ones(3)).tolist() == [2, 2, 2]


@pytest.mark.parametrize("backend", [None, "reference", "eager"])
def test_backends(backend):
    assert graphlift.compile(f, backend=backend)(torch.ones(1)).item() == 2
    assert "reference" in graphlift.list_backends()


def test_options():
    assert graphlift.compile(f, options={"recompile_limit": 3, "recompute": False})(torch.ones(1)).item() == 2
    names = {
        "recompile_limit",
        "recompute",
        "emulate_precision_casts",
        "graph_level",
        "skip_passes",
        "remember_weights",
    }
    assert set(graphlift.list_options()) == names
    with pytest.raises(ValueError, match="'torch' or 'aten', not 'fx'"):
        graphlift.compile(f, options={"graph_level": "fx"})


@pytest.mark.parametrize(
    "arguments, valid",
    [
        ({"mode": "fastest"}, graphlift.list_modes()),
        ({"backend": "inductr"}, [*graphlift.list_backends(), "inductor"]),
        ({"backend": 3}, graphlift.list_backends()),
        ({"options": {"speed": 3}}, ["recompile_limit", "recompute"]),
        ({"options": {"recompile_limit": "many"}}, ["positive int"]),
        ({"options": {"recompile_limit": 0}}, ["positive int"]),
        ({"options": {"recompute": 1}}, ["bool"]),
        ({"options": {"emulate_precision_casts": "yes"}}, ["bool"]),
        ({"options": {"skip_passes": ["fusion"]}}, ["str"]),
        ({"options": {"remember_weights": 1}}, ["bool"]),
        ({"options": {"skip_passes": "fusion,folding"}}, ["'folding'", "all", *graphlift.list_passes()]),
        ({"dynamic": "yes"}, ["None", "True", "False"]),
    ],
)
def test_wrong_argument_names_the_valid_ones(arguments, valid):
    with pytest.raises(ValueError) as caught:
        graphlift.compile(**arguments)  # as a decorator: before there is a function
    for name in valid:
        assert name in str(caught.value)


def test_the_environment_says_which_passes_are_skipped(monkeypatch):
    monkeypatch.setenv("GRAPHLIFT_SKIP_PASSES", "folding")
    with pytest.raises(ValueError, match="GRAPHLIFT_SKIP_PASSES names no pass 'folding'"):
        graphlift.compile(f)
    assert graphlift.compile(f, options={"skip_passes": ""})(torch.ones(1)).item() == 2  # the option goes first


@pytest.mark.parametrize("thing", [3, "text", torch.ones(1)])
def test_not_callable(thing):
    with pytest.raises(TypeError, match=type(thing).__name__):
        graphlift.compile(thing)


def test_disable_returns_the_thing_itself():
    net = torch.nn.Linear(1, 1)
    assert graphlift.compile(f, disable=True) is f
    assert graphlift.compile(net, disable=True) is net
    assert graphlift.compile(disable=True)(f) is f
