"""Calls that no kernel is made of say why, in `perf_hints`."""

import re

import pytest
import torch
import torch.nn.functional as F

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
    (lambda x: torch.cat([x * 2, x.sort()[0][:3] + 1]), torch.randn(4, 4), "aten::cat.*not all made by one kernel"),
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


FILLS = [
    lambda x, v: x.masked_fill(x > 0, v) * 1,
    lambda x, v: x.clone().fill_(v) * 1,
    lambda x, v: torch.full_like(x, v) * 1,
    lambda x, v: torch.full((3,), v, dtype=x.dtype) * 1,
    lambda x, v: x.new_full((3,), v) * 1,
    lambda x, v: x.clamp(max=v) * 1,
    lambda x, v: F.pad(x, (0, 0, 2, 0), value=v) * 1,
]
NUMBERS = [
    (torch.float16, (-65504, 65505, -1e9, -1000000, float("-inf"), float("nan"))),
    (torch.bfloat16, (3e38, 3.4e38, float("inf"))),
    (torch.float32, (3.4e38, 3.5e38, -1e39, float("-inf"))),
    (torch.uint8, (255, 256, -1, -255, -256, 255.5, -0.5)),
    (torch.int8, (-128, -129, 127, 128, 127.5)),
    (torch.int32, (2**31 - 1, 2**31, -(2**31))),
    (torch.int64, (2**62, 1e30)),
]


@pytest.mark.parametrize("dtype, numbers", NUMBERS, ids=lambda case: str(case) if isinstance(case, torch.dtype) else "")
@pytest.mark.parametrize("fill", range(len(FILLS)))
def test_numbers_that_a_dtype_does_not_have(fill, dtype, numbers):
    """Fills raise on them, as eager does, rather than store another number."""

    def result(run, number):
        try:
            return run(torch.ones(4, 2, dtype=dtype), number)
        except RuntimeError as error:
            return str(error)

    before = graphlift.counters()["kernels"]
    for number in numbers:

        def function(x, v=number):
            return FILLS[fill](x, v)

        expected = result(FILLS[fill], number)
        got = result(lambda x, _, f=function: graphlift.compile(f, dynamic=False)(x), number)
        if isinstance(expected, str):
            assert got == expected
        else:
            torch.testing.assert_close(got, expected, equal_nan=True, rtol=0, atol=0)
    assert graphlift.counters()["kernels"] > before
