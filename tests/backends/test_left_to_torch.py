"""Calls that no kernel is made of say why, in `perf_hints`."""

import re

import pytest
import torch

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


def hints(capture, function, *args, **options):
    graphlift.reset()
    graphlift.set_logs("perf_hints")
    before = graphlift.counters()["externals"]
    try:
        torch.testing.assert_close(graphlift.compile(function, fullgraph=True, **options)(*args), function(*args))
    finally:
        graphlift.set_logs("-all")
    said = [record.getMessage() for record in capture.records if record.name == "graphlift.perf_hints"]
    capture.clear()
    return said, graphlift.counters()["externals"] - before


LEFT = [
    (lambda x: x.sort()[0], torch.randn(4, 4), "aten::sort.*kernels do not do it"),
    (lambda x: x.cumsum(0), torch.randn(4, 4), "aten::cumsum.*kernels do not do it"),
    (lambda x: x * 2, torch.randn(4, 4, dtype=torch.complex64), "aten::mul.*of another device, or of a dtype"),
    (lambda x: torch.cat([x * 2, x.sort()[0] + 1]), torch.randn(4, 4), "aten::cat.*not all made by one kernel"),
    (
        lambda x: torch.view_as_real(x) * 2,
        torch.randn(4, dtype=torch.complex64),
        "view_as_real.*elements are of another dtype",
    ),
]


@pytest.mark.parametrize("function, x, words", LEFT)
def test_what_is_left_to_torch_says_why(caplog, function, x, words):
    said, externals = hints(caplog, function, x, dynamic=False)
    assert externals > 0
    assert any(re.search(words, line) for line in said), said
    assert all(f"{__file__}:" in line for line in said if "do not do it" in line)


def test_what_is_a_kernel_or_a_product_of_ours_says_nothing(caplog):
    said, externals = hints(caplog, lambda x: (x @ x).relu().softmax(-1).t() + 1, torch.randn(8, 8))
    assert externals == 0 and said == []
