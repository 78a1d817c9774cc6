"""Operators that programs register with torch.library: only what they say for tensors without data runs while capturing."""

import pytest
import torch
from judging import check

import graphlift

RAN = []  # what kernels did, in order


@torch.library.custom_op("graphlift_tests::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    RAN.append("scaled")
    return x * by


@scaled.register_fake
def _(x, by):
    return torch.empty_like(x)


scaled.register_autograd(
    lambda ctx, grad: (grad * ctx.by, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
)


@torch.library.custom_op("graphlift_tests::late", mutates_args=())
def late(x: torch.Tensor) -> torch.Tensor:
    RAN.append("late")
    return x * 3


@torch.library.custom_op("graphlift_tests::told", mutates_args=())
def told(x: torch.Tensor) -> None:
    RAN.append("told")


@torch.library.custom_op("graphlift_tests::swapped", mutates_args=("x",))
def swapped(x: torch.Tensor) -> torch.Tensor:
    RAN.append("swapped")
    before = x.clone()
    x.neg_()
    return before


LIBRARY = torch.library.Library("graphlift_tests", "FRAGMENT")


def kernel(name, schema, key, compute):
    def run(*args):
        RAN.append(name)
        return compute(*args)

    LIBRARY.define(name + schema)
    LIBRARY.impl(name, run, key)
    return getattr(torch.ops.graphlift_tests, name)


WITHOUT_FAKE = [
    kernel("on_cpu", "(Tensor x) -> Tensor", "CPU", torch.cos),
    kernel("on_all", "(Tensor x) -> Tensor", "CompositeExplicitAutograd", torch.cos),
    kernel("composed", "(Tensor x) -> Tensor", "CompositeImplicitAutograd", torch.cos),
    kernel("number_on_cpu", "(Tensor x) -> int", "CPU", lambda x: x.dim()),
    kernel("nothing_on_cpu", "(Tensor x) -> ()", "CPU", lambda x: None),
    kernel("nothing_composed", "(Tensor x) -> ()", "CompositeImplicitAutograd", lambda x: None),
    torch.ops.graphlift_tests.composed.default,
    told,
    swapped,
]


def test_with_a_fake_it_is_one_region_with_gradients():
    check(lambda x: scaled(x + 1, 2.5).sin(), lambda: (torch.randn(4, requires_grad=True),), graphs=1, breaks=0)
    RAN.clear()
    compiled = graphlift.compile(lambda x: scaled(x, 2.0) + 1)
    for _ in range(3):
        compiled(torch.ones(3))
    assert RAN == ["scaled"] * 3


@pytest.mark.parametrize("op", WITHOUT_FAKE, ids=str)
def test_without_a_fake_it_breaks_and_its_kernel_runs_once_a_call(op):
    def f(x):
        y = x + 1
        result = op(y)
        return y if result is None else y * result

    check(f, lambda: (torch.randn(4),), breaks=1)
    compiled = graphlift.compile(f)
    for _ in range(3):
        RAN.clear()
        compiled(torch.ones(3))
        assert len(RAN) == 1


def test_a_fake_that_is_registered_later_is_used():
    def f(x):
        return late(x + 1) * 2

    with pytest.raises(graphlift.GraphBreakError, match="register_fake"):
        graphlift.compile(f, fullgraph=True)(torch.ones(3))
    late.register_fake(torch.empty_like)
    check(f, lambda: (torch.ones(3),), graphs=1, breaks=0)


OPEN = torch.library.Library("open_to_autograd", "DEF")
OPEN.define("twice_sine(Tensor x) -> Tensor")
OPEN.impl("twice_sine", lambda x: x.sin() * 2, "CompositeExplicitAutograd")
OPEN.define("add_to(Tensor(a!) x, Tensor y) -> Tensor")
OPEN.impl("add_to", lambda x, y: x.add_(y).sum() * y, "CPU")
torch.library.register_fake("open_to_autograd::twice_sine")(torch.empty_like)
torch.library.register_fake("open_to_autograd::add_to")(lambda x, y: torch.empty_like(y))


def reads(x):
    return torch.ops.open_to_autograd.twice_sine(x * 2) + x


def writes(x):
    y = x * 2
    return torch.ops.open_to_autograd.add_to(y, x.cos()) + x, y


@pytest.mark.parametrize("program", [reads, writes], ids=lambda program: program.__name__)
def test_where_no_kernel_is_for_autograd_it_sees_what_the_other_kernels_call(program):
    counts = check(program, lambda: [torch.linspace(-1, 1, 4).requires_grad_()])
    assert counts["graph_breaks"] > 0
    check(program, lambda: [torch.linspace(-1, 1, 4)], graphs=1, breaks=0)
