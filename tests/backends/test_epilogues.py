"""Products and convolutions finished with the calls behind them: no kernel is left, values and gradients are eager's."""

import pytest
import torch
import torch.nn.functional as F
from closeness import close

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")

FINISHES = {
    "relu": lambda z, y, r: F.relu(z),
    "gelu": lambda z, y, r: F.gelu(z),
    "gelu tanh": lambda z, y, r: F.gelu(z, approximate="tanh"),
    "silu": lambda z, y, r: F.silu(z),
    "sigmoid": lambda z, y, r: torch.sigmoid(z),
    "tanh": lambda z, y, r: torch.tanh(z),
    "leaky relu": lambda z, y, r: F.leaky_relu(z, 0.2),
    "add": lambda z, y, r: z + y,
    "added to": lambda z, y, r: y + z,
    "sub": lambda z, y, r: z - y,
    "mul": lambda z, y, r: z * y,
    "row": lambda z, y, r: z + r,
    "scale": lambda z, y, r: z * 0.125 + 2,
    "view between": lambda z, y, r: z.view(2, -1, z.shape[-1]) * y.view(2, -1, y.shape[-1]) + r,
    "many": lambda z, y, r: F.relu(z * 0.5 + y) * y,
}
PRODUCTS = {
    "mm": lambda a, b, r: a @ b,
    "addmm": lambda a, b, r: torch.addmm(r, a, b),
    "few rows": lambda a, b, r: a[:2] @ b,
}


def made(function, *inputs, skip=""):
    """The results, and how many kernels and natives made them."""
    compiled = graphlift.compile(function, options={"skip_passes": skip})
    before = graphlift.counters()
    got = compiled(*inputs)
    after = graphlift.counters()
    return got, [after[name] - before[name] for name in ("kernels", "natives", "graphs")]


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("finish", FINISHES)
def test_no_kernel_is_left(finish, product):
    torch.manual_seed(1)
    a, b, y, r = torch.randn(16, 24), torch.randn(24, 40), torch.randn(16, 40), torch.randn(40)
    rows = 2 if product == "few rows" else 16

    def function(a, b, y, r):
        return FINISHES[finish](PRODUCTS[product](a, b, r), y[:rows], r)

    got, counts = made(function, a, b, y, r)
    assert not close(function(a, b, y, r), got)
    assert made(function, a, b, y, r, skip="epilogues")[1] == [1, 1, 1]
    if _C.onednn_refusal() == "":
        assert counts == [0, 1, 1]


SPECIAL = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0]


@pytest.mark.parametrize("finish", ["relu", "add", "mul", "scale", "leaky relu", "tanh", "sigmoid"])
def test_special_numbers(finish):
    special = torch.tensor(SPECIAL)
    a, b = torch.eye(7), torch.zeros(7, 7)
    y, r = special.flip(0).repeat(7, 1), special

    def function(a, b, y, r):
        return FINISHES[finish](torch.addmm(r, a, b), y, r)

    got, counts = made(function, a, b, y, r)
    assert torch.equal(got.isnan(), function(a, b, y, r).isnan())
    assert not close(function(a, b, y, r), got)
    assert counts[1:] == [1, 1] and (counts[0] == 0 or _C.onednn_refusal() != "")


def test_who_else_reads_the_product_gets_it():
    a, b, y = torch.randn(16, 24), torch.randn(24, 40), torch.randn(16, 40)

    def function(a, b, y):
        z = a @ b
        return z + y, z

    def twice(a, b, y):
        z = a @ b
        return z * z

    for program in (function, twice):
        got, counts = made(program, a, b, y)
        assert not close(program(a, b, y), got)
        assert counts == [1, 1, 1], program.__name__


def test_gradients_of_a_shared_input():
    """Backward adds products: one finishes the other."""

    def run(function):
        torch.manual_seed(4)
        before = graphlift.counters()
        x, w, v = (torch.randn(*shape, requires_grad=True) for shape in ((12, 20), (20, 30), (20, 36)))
        out = function(x, w, v)
        (out[0].sum() + out[1].pow(2).sum()).backward()
        after = graphlift.counters()
        return [*out, x.grad, w.grad, v.grad], [after[name] - before[name] for name in ("kernels", "natives", "graphs")]

    def function(x, w, v):
        return x @ w * 0.5, x @ v + 1

    expected, _ = run(function)
    got, counts = run(graphlift.compile(function))
    unfinished, more = run(graphlift.compile(function, options={"skip_passes": "epilogues"}))
    assert not close(expected, got) and not close(expected, unfinished)
    assert counts[1:] == more[1:] == [6, 1]
    assert counts[0] < more[0] or _C.onednn_refusal() != ""


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
def test_convolution_with_a_residual(last):
    x, w, b, y = torch.randn(2, 4, 9, 9), torch.randn(4, 4, 3, 3), torch.randn(4), torch.randn(2, 4, 9, 9)

    def function(x, w, b, y):
        return F.conv2d(x, w, b, 1, 1) + y

    if last:
        x, y = (each.to(memory_format=torch.channels_last) for each in (x, y))
    got, counts = made(function, x, w, b, y)
    assert not close(function(x, w, b, y), got)
    if _C.onednn_refusal() == "":
        assert counts == [0 if last else 1, 1, 1]  # a residual must lie as the kernel's own output does


def test_other_memory_is_left_to_kernels():
    a, b, y = torch.randn(16, 24), torch.randn(24, 40), torch.randn(40, 16)

    def function(a, b, y):
        return a @ b + y.t()

    got, counts = made(function, a, b, y)
    assert not close(function(a, b, y), got)
    assert counts == [1, 1, 1]
