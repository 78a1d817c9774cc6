"""How often a tensor was written to, as autograd counts it, and what is given other data before its backward."""

import pytest
import torch
from judging import leaves

import graphlift


def written_twice(x):
    y = x * 2
    y += 1
    y[0] = 3
    return y


def through_a_view(x):
    y = x * 2
    part = y[1:]
    part.mul_(3)
    return y, part


def a_view_alone(x):
    y = (x * 2).view(2, 2)
    y.add_(1)
    return y


def a_factory(x):
    y = torch.zeros(4)
    y[0].add_(1)
    y[1:].copy_(x.detach()[1:])
    return y, y[2:]


def an_argument(x):
    y = x.detach()
    y.add_(1)
    y.mul_(2)
    return x * 2


def without_gradients(x):
    y = x.clone()
    with torch.no_grad():
        y.add_(1)
        y.mul_(3)
    return y, y.detach()


def an_out(x):
    out = torch.empty(4)
    torch.add(x.detach(), 1, out=out)
    return out


def many_at_once(x):
    pair = [x.detach(), torch.ones(3)]
    torch._foreach_add_(pair, 1.0)
    torch._foreach_mul_(pair, [2.0, 3.0])
    return pair[1], torch._foreach_add(pair, 1.0)


def in_place_activation(x):
    return torch.relu_(x.sin() * 2).exp()


PROGRAMS = [
    written_twice,
    through_a_view,
    a_view_alone,
    a_factory,
    an_argument,
    without_gradients,
    an_out,
    many_at_once,
    in_place_activation,
]


@pytest.mark.parametrize("differentiated", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_versions_are_eagers(program, differentiated):
    def versions(function):
        x = torch.arange(4.0).requires_grad_(differentiated)
        made = leaves(function(x))
        counts = [t._version for t in [*made, x]]
        for t in made:
            if t.requires_grad:
                t.sum().backward(retain_graph=True)
        return counts, x.grad

    compiled = graphlift.compile(program, fullgraph=True)
    for _ in range(3):
        (counts, gradient), (eager_counts, eager_gradient) = versions(compiled), versions(program)
        assert counts == eager_counts
        assert (gradient is None) == (eager_gradient is None)
        assert gradient is None or torch.equal(gradient, eager_gradient)
    assert graphlift.counters()["hits"] >= 2


def test_a_write_behind_the_region_is_found():
    """What backward reads was written to by the region, and is written to again."""

    def program(x):
        y = x * 2
        y.add_(1)
        return y.exp_()

    compiled = graphlift.compile(program, fullgraph=True)
    for _ in range(2):
        for function in (program, compiled):
            y = function(torch.ones(4, requires_grad=True))
            with torch.no_grad():
                y.mul_(2)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()


DATA = {
    "smaller": lambda: torch.ones(2, 2),
    "larger": lambda: torch.ones(5, 6),
    "a row": lambda: torch.ones(4),
    "one row": lambda: torch.ones(1, 4),
    "other strides": lambda: torch.linspace(-1, 1, 12).view(4, 3).t(),
    "other dtype": lambda: torch.linspace(-1, 1, 12, dtype=torch.float64).view(3, 4),
    "the same kind": lambda: torch.linspace(-1, 1, 12).view(3, 4),
}


@pytest.mark.parametrize("data", DATA)
def test_other_data_before_the_backward(data):
    """A product's gradient reads its factor as it is by then, in eager too."""

    def program(weight, x):
        return weight * x

    compiled = graphlift.compile(program, fullgraph=True)

    def run(function):
        weight = torch.nn.Parameter(torch.arange(12.0).view(3, 4))
        x = torch.linspace(0, 1, 12).view(3, 4).requires_grad_()
        y = function(weight, x)
        weight.data = DATA[data]()
        y.sum().backward()
        return x.grad, weight.grad

    for _ in range(2):
        if data in ("smaller", "larger", "a row"):
            for function in (program, compiled):
                with pytest.raises(RuntimeError):
                    run(function)
        elif data == "one row":  # eager broadcasts it; a graph was made for its sizes
            with pytest.raises(RuntimeError, match="data of another size"):
                run(compiled)
        else:
            for got, want in zip(run(compiled), run(program), strict=True):
                torch.testing.assert_close(got, want)
    assert graphlift.counters()["graphs"] == 1


def test_other_data_that_no_gradient_reads():
    def program(weight, x):
        return weight + x * 3

    weight = torch.nn.Parameter(torch.arange(4.0))
    x = torch.ones(4, requires_grad=True)
    y = graphlift.compile(program, fullgraph=True)(weight, x)
    weight.data = torch.ones(9)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(gradient, torch.full((4,), 3.0))


def test_a_view_that_is_one_of_many():
    """Eager refuses to write to what split, unbind and chunk gave."""

    def program(x):
        y = x * 2
        return y.split(2), y.unbind()[0], y.view(2, 2)

    compiled = graphlift.compile(program, fullgraph=True)
    for _ in range(2):
        for function in (program, compiled):
            parts, one, whole = function(torch.ones(4, requires_grad=True))
            for view in (*parts, one):
                with pytest.raises(RuntimeError, match="multiple views"):
                    view.mul_(2)
            assert torch.equal(whole.mul_(2).detach(), torch.full((2, 2), 4.0))
