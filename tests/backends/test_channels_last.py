"""Images between convolutions lie with their channels last: results, gradients, buffers and their strides are eager's."""

import copy
import logging

import pytest
import torch
from torch import nn

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


class Residual(nn.Module):
    def __init__(self, width, groups=1):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, groups=groups)

    def forward(self, x):
        return torch.relu(x + self.second(torch.relu(self.norm(self.first(x)))))


def plain():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Residual(8), nn.MaxPool2d(2), Residual(8))


def with_head():
    return nn.Sequential(
        plain(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.0), nn.Linear(32, 5), nn.LogSoftmax(-1)
    )


def depthwise():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Residual(8, groups=8), Residual(8, groups=2))


def upsampled():
    return nn.Sequential(plain(), nn.Upsample(scale_factor=2), nn.Conv2d(8, 4, 1), nn.GroupNorm(2, 4), nn.SiLU())


def patches():
    return nn.Sequential(
        nn.Conv2d(3, 8, 2, stride=2), nn.Conv2d(8, 16, 2, stride=2), nn.Flatten(2), nn.Softmax(-1), nn.Linear(9, 3)
    )


def trained(model, x):
    x = x.clone().requires_grad_()
    out = model(x)
    out.pow(2).mean().backward()
    return out, [x.grad, *(p.grad for p in model.parameters()), *(b.clone() for b in model.buffers())]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("make", [plain, with_head, depthwise, upsampled, patches], ids=lambda f: f.__name__)
def test_training_equals_eager(make, dtype):
    torch.manual_seed(0)
    model = make().to(dtype)
    same = copy.deepcopy(model)
    x = torch.randn(2, 3, 12, 12, dtype=dtype)
    expected, gradients = trained(model, x)
    before = graphlift.counters()
    compiled = graphlift.compile(same, fullgraph=True)
    state = copy.deepcopy(same.state_dict())
    for _ in range(2):
        same.zero_grad()
        same.load_state_dict(state)
        out, got = trained(compiled, x)
        loose = {"rtol": 2e-4, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 5e-2, "atol": 5e-2}
        torch.testing.assert_close(out, expected, **loose)
        assert out.stride() == expected.stride()
        for ours, eager in zip(got, gradients, strict=True):
            torch.testing.assert_close(ours, eager, **loose)
            assert ours.stride() == eager.stride()
    assert graphlift.counters()["graphs"] == before["graphs"] + 1


def forward_graph(model, x, caplog):
    graphlift.set_logs("aot_graphs")
    caplog.clear()
    try:
        with torch.no_grad(), caplog.at_level(logging.DEBUG):
            graphlift.compile(model)(x)
    finally:
        graphlift.set_logs()
    return caplog.text


def test_the_graph_shows_it(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("graphlift"), "propagate", True)
    x = torch.randn(2, 3, 12, 12)
    assert "memory_format(channels_last)" in forward_graph(plain(), x, caplog)
    # As the program has it already.
    model = plain().to(memory_format=torch.channels_last)
    text = forward_graph(model, x.to(memory_format=torch.channels_last), caplog)
    assert "aten::convolution" in text and "memory_format" not in text


def test_weights_that_the_graph_casts_are_laid_out_so(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("graphlift"), "propagate", True)
    x = torch.randn(2, 3, 12, 12)
    turned = "memory_format(channels_last)"
    assert forward_graph(plain(), x, caplog).count(turned) == 1  # of the image alone
    model = plain()
    with torch.autocast("cpu", torch.bfloat16):
        text = forward_graph(model, x, caplog)
        convolutions = text.count("aten::convolution")
        assert convolutions > 1 and text.count(turned) == 1 + convolutions
        with torch.no_grad():
            torch.testing.assert_close(graphlift.compile(model)(x), model(x), rtol=3e-2, atol=3e-2)


def test_views_and_results_that_share_memory():
    convolution = nn.Conv2d(3, 3, 3, padding=1)

    def program(x):
        y = convolution(convolution(torch.relu(convolution(x))))
        return y, y.flatten(1), y[:, 0]

    compiled = graphlift.compile(program, fullgraph=True)
    x = torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        for _ in range(2):
            got, expected = compiled(x), program(x)
            for ours, eager in zip(got, expected, strict=True):
                torch.testing.assert_close(ours, eager)
                assert ours.stride() == eager.stride()
            got[0].zero_()
            assert got[1].abs().sum() == 0 and got[2].abs().sum() == 0
    assert graphlift.graph_count() >= 1


def by_strides(x, y):
    return x.as_strided((2, 5), (7, 1)), y


def by_strides_of_a_part(x, y):
    return x[0, 0, 0, 0].as_strided((2, 5), (7, 1)), y


def copied_by_strides(x, y):
    return torch.as_strided_copy(x[0], (2, 5), (7, 300)), y


def written_by_strides(x, y):
    return torch.as_strided_scatter(x, torch.ones(2, 5), (2, 5), (7, 1)), y


def aliased(x, y):
    return torch.ops.aten._reshape_alias(x, (16, 144), (144, 1)), y


@pytest.mark.parametrize(
    "read", [by_strides, by_strides_of_a_part, copied_by_strides, written_by_strides, aliased], ids=lambda f: f.__name__
)
def test_reads_by_strides(read):
    torch.manual_seed(0)
    first, second = plain().eval(), nn.Conv2d(8, 8, 3, padding=1)

    def program(x):
        image = first(x)
        image = nn.functional.interpolate(image, scale_factor=2.0)
        read_first, image = read(image, second(second(image)))
        return read_first * 2, image

    x = torch.randn(2, 3, 12, 12)
    kernels = graphlift.counters()["kernels"]
    with torch.no_grad():
        got, expected = graphlift.compile(program, fullgraph=True)(x), program(x)
    assert graphlift.counters()["kernels"] > kernels
    torch.testing.assert_close(got, expected, rtol=2e-4, atol=2e-5)
    assert [t.stride() for t in got] == [t.stride() for t in expected]
