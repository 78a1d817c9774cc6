"""Batch norms of every kind are kernels: in training and evaluation, with statistics and without, in each float dtype."""

import pytest
import torch
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
