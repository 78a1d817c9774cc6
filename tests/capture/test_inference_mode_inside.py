"""torch.inference_mode inside of a function: one graph, whose results are inference tensors where eager's are."""

import pytest
import torch

import graphlift

LAYER = torch.nn.Linear(3, 3)


def block(x):
    with torch.inference_mode():
        y = LAYER(x).relu()
    return y


@torch.inference_mode()
def decorated(x):
    return LAYER(x).sin(), x


def calls_one(x):
    return decorated(x * 2)[0] + 1


def both_kinds(x):
    before = x * 2
    with torch.inference_mode():
        inside = before + 1
        with torch.inference_mode(False):
            normal = x.cos()
        view = before[0]
        outer = x.t()
    return before, inside, normal, view, outer, before.sin()


def turned_off(x):
    with torch.inference_mode(mode=False):
        return LAYER(x)


def asks(x):
    with torch.inference_mode():
        inside = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        y = x + 1
    return y, inside, torch.is_inference_mode_enabled(), y.is_inference(), torch.is_grad_enabled()


def writes(x):
    y = x.detach().clone()
    with torch.inference_mode():
        y.add_(1)
        z = torch.ones(3).mul_(2)
    return y * 2, z


def raises_inside(x):
    try:
        with torch.inference_mode():
            y = x + 1
            raise ValueError
    except ValueError:
        return y, x * 2


PROGRAMS = [block, decorated, calls_one, both_kinds, turned_off, asks, writes, raises_inside]


def facts(value):
    if isinstance(value, torch.Tensor):
        return value.is_inference(), value.requires_grad, value.is_leaf, value.stride(), value._is_view()
    return [facts(item) for item in value] if isinstance(value, tuple) else value


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in tensors(item)] if isinstance(value, tuple) else []


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_one_graph(program, requires_grad):
    compiled = graphlift.compile(program, fullgraph=True)
    for _ in range(2):
        x = torch.randn(3, 3).requires_grad_(requires_grad)
        got, expected = compiled(x), program(x)
        assert facts(got) == facts(expected)
        torch.testing.assert_close(tensors(got), tensors(expected))
    assert graphlift.graph_count() == 1
    assert not torch.is_inference_mode_enabled()


def test_what_inference_tensors_refuse():
    def program(x):
        with torch.inference_mode():
            y = x + 1
        return (y * LAYER.weight).sum()

    messages = []
    for function in (program, graphlift.compile(program)):
        with pytest.raises(RuntimeError) as raised:
            function(torch.randn(3, 3, requires_grad=True))
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def test_a_break_inside():
    def program(x):
        y = x * 2
        with torch.inference_mode():
            z = y.sin()
            graphlift.graph_break()
            w = z.cos()
        return w, y * 3

    compiled = graphlift.compile(program)
    for _ in range(2):
        x = torch.randn(3, 3, requires_grad=True)
        got, expected = compiled(x), program(x)
        assert facts(got) == facts(expected)
        torch.testing.assert_close(got, expected)
    assert not torch.is_inference_mode_enabled() and graphlift.graph_count() >= 2


def test_gradients_around():
    def program(x):
        with torch.inference_mode():
            scale = LAYER.weight.abs().max()
        return x * 2, scale

    compiled, grads = graphlift.compile(program, fullgraph=True), []
    x = torch.randn(3, 3)
    for function in (program, compiled):
        given = x.clone().requires_grad_()
        out, scale = function(given)
        assert scale.is_inference()
        out.sum().backward()
        grads.append(given.grad)
    torch.testing.assert_close(*grads)
