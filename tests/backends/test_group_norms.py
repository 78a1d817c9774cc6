"""Group and instance norms, forward and backward, are kernels, in both layouts of images and with what stands beside them."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


def trained(model, inputs, wrap):
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    model.zero_grad()
    step, results = wrap(model), []
    for x in inputs:
        x = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
        y = step(x)
        y.pow(2).sum().backward()
        results += [y.detach(), x.grad]
    return results + [p.grad for p in model.parameters()]


def holds(model, inputs, **options):
    expected, before = trained(model, inputs, lambda m: m), graphlift.counters()
    got = trained(model, inputs, lambda m: graphlift.compile(m, fullgraph=True, **options))
    after = graphlift.counters()
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)
    for a, b in zip(got, expected, strict=True):
        assert a.stride() == b.stride()
    assert after["kernels"] > before["kernels"]
    return after["externals"] - before["externals"], after["graphs"] - before["graphs"]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("channels, groups", [(8, 1), (8, 2), (64, 32), (6, 6), (96, 8)])
def test_group_norm_and_silu(channels, groups, layout):
    torch.manual_seed(1)
    x = torch.randn(3, channels, 9, 7).to(memory_format=layout)
    assert holds(nn.Sequential(nn.GroupNorm(groups, channels), nn.SiLU()), [x], dynamic=False)[0] == 0


def test_without_parameters_and_of_other_ranks():
    torch.manual_seed(1)
    for shape in ((4, 6), (4, 6, 5), (2, 6, 3, 4, 5)):
        assert holds(nn.GroupNorm(3, 6, affine=False), [torch.randn(shape)], dynamic=False)[0] == 0


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(1, 6, 1, 2), (2, 6, 40, 50), (2, 6, 3, 4, 5)])
def test_channels_last(shape, affine):
    torch.manual_seed(1)
    layout = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    x = torch.randn(shape).to(memory_format=layout)
    assert holds(nn.GroupNorm(3, 6, affine=affine), [x], dynamic=False)[0] == 0


def test_numbers_far_from_zero_and_none_at_all():
    """Channels last: images keep theirs to themselves, and means of 1000 leave as many digits as they can."""
    torch.manual_seed(1)
    model = nn.GroupNorm(2, 8)
    x = (torch.randn(4, 8, 6, 6) + 1000).to(memory_format=torch.channels_last)
    x[1, 3, 2, 2], x[2, 7, 0, 0] = float("nan"), float("inf")
    exact, got = model.double()(x.double()), graphlift.compile(model.float())(x)
    torch.testing.assert_close(got, exact.float(), rtol=1e-3, atol=1e-3, equal_nan=True)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_batches_and_images_of_any_size(layout):
    torch.manual_seed(1)
    inputs = [torch.randn(n, 8, h, w).to(memory_format=layout) for n, h, w in ((3, 5, 6), (2, 9, 4), (7, 3, 3))]
    externals, graphs = holds(nn.GroupNorm(4, 8), inputs)
    assert graphs == 2 and externals == 0


def test_instance_norm():
    torch.manual_seed(1)
    model = nn.Sequential(nn.InstanceNorm2d(5, affine=True), nn.ReLU())
    graphlift.compile(model, dynamic=False)(torch.randn(2, 5, 8, 8))
    holds(model, [torch.randn(2, 5, 8, 8)], dynamic=False)


def test_batch_norm_without_statistics():
    x = torch.randn(8, 5, 6, 6)

    def function(x):
        return F.batch_norm(x, None, None, training=True).relu()

    before = graphlift.counters()
    torch.testing.assert_close(graphlift.compile(function)(x), function(x))
    after = graphlift.counters()
    assert after["externals"] == before["externals"] and after["kernels"] > before["kernels"]


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(8, 6), (4, 6, 7), (4, 6, 9, 5), (2, 6, 3, 4, 5)])
def test_batch_norm_by_kept_statistics(shape, affine):
    torch.manual_seed(1)
    kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}[len(shape)]
    model = nn.Sequential(kind(6, affine=affine), nn.ReLU()).eval()
    model[0].running_mean.normal_()
    model[0].running_var.uniform_(0.5, 2)
    inputs = [torch.randn(shape)]
    if len(shape) == 4:
        inputs.append(inputs[0].to(memory_format=torch.channels_last))
    for x in inputs:
        for dynamic in (False, True):
            assert holds(model, [x], dynamic=dynamic)[0] == 0
