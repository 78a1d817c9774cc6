"""Batch norms of every kind are kernels: in training and evaluation, with statistics and without, in each float dtype."""

import copy
import logging

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")

BOUNDS = {torch.float32: 1e-4, torch.float64: 1e-10}
DTYPES = [*BOUNDS, torch.bfloat16]
NORMS = [
    (nn.BatchNorm1d(6), (9, 6)),
    (nn.BatchNorm1d(6), (4, 6, 7)),
    (nn.BatchNorm2d(16), (3, 16, 5, 7)),
    (nn.BatchNorm2d(5, affine=False), (3, 5, 4, 4)),
    (nn.BatchNorm3d(4, momentum=0.3), (2, 4, 3, 4, 5)),
    (nn.BatchNorm2d(8, track_running_stats=False), (3, 8, 5, 5)),
]


def calls(wrap, make, shape, dtype, mixed, train, layout, exact=False):
    """Results, gradients and statistics of three calls; exact: of the same numbers in double."""
    torch.manual_seed(0)
    module = make(dtype=torch.float32)
    for value in (*module.parameters(), *module.buffers()):
        if value.is_floating_point():
            nn.init.uniform_(value, 0.5, 2)
    module.train(train).to(torch.float32 if mixed else dtype)
    if exact:
        module.double()
    run, results = wrap(nn.Sequential(module, nn.SiLU())), []
    for _ in range(3):
        x = torch.randn(shape).to(dtype)
        x = (x.double() if exact else x).contiguous(memory_format=layout).requires_grad_()
        y = run(x)
        y.backward(torch.ones_like(y) + y.detach())
        results += [y.detach(), x.grad]
    return results + [p.grad for p in module.parameters()] + list(module.buffers())


def is_as_exact(got, expected, exact):
    """Eager rounds to 16 bits in between: its results are no closer to those in double, but for the last rounding."""
    rounding = exact.abs().max() / 256
    return (got.double() - exact).abs().max() <= 1.5 * (expected.double() - exact).abs().max() + rounding


def compare(*case):
    expected = calls(lambda module: module, *case)
    before = graphlift.counters()
    got = calls(lambda module: graphlift.compile(module, fullgraph=True, dynamic=False), *case)
    after = graphlift.counters()
    if case[2] is torch.bfloat16:
        exact = calls(lambda module: module, *case, exact=True)
        assert all(is_as_exact(*results) for results in zip(got, expected, exact, strict=True))
    else:
        torch.testing.assert_close(got, expected, rtol=BOUNDS[case[2]], atol=BOUNDS[case[2]])
    for ours, eager in zip(got, expected, strict=True):
        assert ours.stride() == eager.stride() and ours.dtype == eager.dtype
    assert after["externals"] == before["externals"] and after["kernels"] > before["kernels"]


def again(module):
    options = {name: getattr(module, name) for name in ("affine", "momentum", "track_running_stats")}
    return lambda dtype: type(module)(module.num_features, dtype=dtype, **options)


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("module, shape", NORMS, ids=lambda x: str(x))
def test_results_gradients_and_statistics(module, shape, dtype, train):
    compare(again(module), shape, dtype, False, train, torch.contiguous_format)


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_channels_last(dtype, train):
    compare(again(nn.BatchNorm2d(40)), (3, 40, 6, 7), dtype, False, train, torch.channels_last)


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_narrow_images_and_wide_parameters(layout, train):
    compare(again(nn.BatchNorm2d(12)), (3, 12, 6, 7), torch.bfloat16, True, train, layout)


def test_one_element_is_an_error_as_in_eager():
    module = nn.BatchNorm1d(3)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        graphlift.compile(module)(torch.randn(1, 3))


def test_batches_of_any_size_and_empty_ones():
    module, twin = nn.BatchNorm2d(4).eval(), nn.BatchNorm2d(4).eval()
    compiled, before = graphlift.compile(module, fullgraph=True), graphlift.counters()
    for batch in (2, 5, 3, 0, 1):
        x = torch.randn(batch, 4, 3, 3)
        torch.testing.assert_close(compiled(x), twin(x))
    after = graphlift.counters()
    assert after["graphs"] - before["graphs"] <= 4 and after["externals"] == before["externals"]


# Mean, deviation, what the mean is off when it is rounded, and the bound of the statistics.
STEEP = {
    torch.float32: (3e3, 1e-2, 2**-13, 1e-6),
    torch.float64: (1e9, 1e-2, 2**-24, 1e-9),
    torch.bfloat16: (300.0, 2.0, 2**-16, 1e-2),
}


@pytest.mark.parametrize("first", [None, -1.0, float("inf"), float("nan")], ids=str)
@pytest.mark.parametrize("dtype", STEEP, ids=str)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed", "dynamic"])
def test_a_small_variance_beside_a_large_mean(dtype, layout, first, dynamic):
    """Statistics in one pass, also where a channel begins with what is far from its mean, or no number."""
    mean, deviation, rounding, bound = STEEP[dtype]

    def step(x, running_mean, running_var):
        return F.batch_norm(x, running_mean, running_var, training=True, momentum=1.0)

    compiled = graphlift.compile(step, fullgraph=True, dynamic=dynamic)
    for images, channels, size in ((4, 6, 9), (4, 6, 40), (3, 96, 9), (2, 3, 130)):
        x = (torch.randn(images, channels, size, size, dtype=torch.float64) * deviation + mean).to(dtype)
        if first is not None:
            x[0, :2, 0, 0] = first
        x = x.contiguous(memory_format=layout)
        results = []
        for run in (compiled, step):
            inputs = x, torch.zeros(channels, dtype=dtype), torch.ones(channels, dtype=dtype)
            before = graphlift.counters()
            results.append((run(*inputs), *inputs[1:]))
            after = graphlift.counters()
            assert run is step or after["externals"] == before["externals"]
        got, eager = results
        for ours, theirs in zip(got, eager, strict=True):
            assert torch.equal(ours.isnan(), theirs.isnan()) and torch.equal(ours.isinf(), theirs.isinf())
        off = x.double() - mean  # exact
        middle = off.mean((0, 2, 3), keepdim=True)
        variance = off.var((0, 2, 3), keepdim=True, correction=0)
        count = x.numel() / channels
        exact = (middle + mean).flatten(), (variance * count / (count - 1)).flatten()
        torch.testing.assert_close([it.double() for it in got[1:]], [*exact], rtol=bound, atol=0, equal_nan=True)
        exact = (off - middle) * torch.rsqrt(variance + 1e-5)
        allowed = (eager[0].double() - exact).nan_to_num(0).abs().max() + rounding / deviation
        torch.testing.assert_close(got[0].double(), exact, rtol=2 * bound, atol=1.5 * allowed.item(), equal_nan=True)


class Residual(nn.Module):
    """Blocks whose images meet gradients of a mean, which eager lays out without their channels last."""

    def __init__(self):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1, bias=False) for _ in range(3))
        self.norms = nn.ModuleList(nn.BatchNorm2d(16) for _ in range(3))

    def forward(self, x):
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = x + norm(convolution(x)).relu()
        return x.mean((2, 3))


def test_masks_behind_norms_are_made_again_and_images_keep_their_layout(caplog):
    torch.manual_seed(0)
    model, x = Residual(), torch.randn(4, 16, 12, 12)
    plain = copy.deepcopy(model)
    compiled = graphlift.compile(model, fullgraph=True)
    before = graphlift.counters()
    caplog.set_level(logging.DEBUG, "graphlift")
    graphlift.set_logs("aot_graphs", "output_code")
    try:
        for _ in range(2):
            compiled(x).square().sum().backward()
            plain(x).square().sum().backward()
    finally:
        graphlift.set_logs()
    after = graphlift.counters()
    assert after["graphs"] - before["graphs"] == 1 and after["kernels"] > before["kernels"]
    for got, expected in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(got.grad, expected.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(list(model.buffers()), list(plain.buffers()), rtol=1e-4, atol=1e-5)
    lines = [line for record in caplog.records for line in record.getMessage().splitlines()]
    saved = {line.split(" = input ")[1] for line in lines if " = input saved" in line and "f32[4, 16, 12, 12]" in line}
    assert len(saved) == 6, (
        saved
    )  # what each convolution reads and gives, and no mask; the first one reads the argument
    kernels = [line for line in lines if "graphlift::kernel(" in line]
    assert kernels and not any("f32[4, 16, 12, 12]{2304, 144, 12, 1} cpu" in line.split(" = ")[0] for line in kernels)
