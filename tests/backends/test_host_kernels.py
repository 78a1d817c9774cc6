"""Numbers that a GPU's program computes on the CPU (an optimizer's step counters) are kernels of the CPU, a call for many."""

import pytest
import torch

from graphlift import _C

runtime = pytest.importorskip("graphlift_runtime")
pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


def corrections(count, device):
    """1 - 0.9 ** step and the root of 1 - 0.999 ** step for each counter, beside calls on `device`."""
    lines = [f"%{i}: f32[]{{}} cpu = input s{i}" for i in range(count)]
    lines += [
        f"%{count}: f32[4]{{1}} {device} = input x",
        f"%{count + 1}: f32[4]{{1}} {device} = aten::exp.default(%{count})",
    ]
    results, new = [], count + 2
    for i in range(count):
        lines += [
            f"%{new}: f32[]{{}} cpu = aten::add.Tensor(%{i}, 1, 1)",
            f"%{new + 1}: f64[]{{}} cpu = aten::_to_copy.default(%{new}, float64, none, none, none, false, none)",
            f"%{new + 2}: f64[]{{}} cpu = aten::pow.Scalar(0.9, %{new + 1})",
            f"%{new + 3}: f64[]{{}} cpu = aten::rsub.Scalar(%{new + 2}, 1, 1)",
            f"%{new + 4}: f64[]{{}} cpu = aten::sqrt.default(%{new + 3})",
        ]
        results += [f"%{new}", f"%{new + 3}", f"%{new + 4}"]
        new += 5
    return "\n".join(lines) + f"\nreturn ({', '.join([*results, f'%{count + 1}'])})\n"


@pytest.mark.parametrize("count", [1, 2, 40])
def test_values(count):
    steps = [torch.tensor(float(i)) for i in range(count)]
    x = torch.randn(4)
    text, got = runtime.host_kernels(corrections(count, "cpu"), [*steps, x])
    assert "graphlift::host_kernel" in text and "aten::pow" not in text
    expected = []
    for step in steps:
        step = step + 1
        correction = 1 - 0.9 ** step.double()
        expected += [step, correction, correction.sqrt()]
    torch.testing.assert_close(got, [*expected, x.exp()])


@pytest.mark.parametrize("count", [1, 40])
def test_what_is_on_the_gpu_stays(count):
    text, _ = runtime.host_kernels(corrections(count, "cuda:0"), [])
    calls = [line for line in text.splitlines() if "graphlift::" in line]
    assert len(calls) == 1 and ("host_kernels(" in calls[0]) == (count > 1)
    assert "f32[4]{1} cuda:0 = aten::exp.default" in text and text.count("aten::") == 1


def test_a_single_call_stays():
    text = "%0: f32[]{} cpu = input s\n%1: f32[]{} cpu = aten::add.Tensor(%0, 1, 1)\nreturn (%1)\n"
    assert runtime.host_kernels(text, [])[0] == text


def test_numbers_between_calls_of_the_gpu():
    """An update that needs a counter stands in front of the next counter."""
    count, lines, results = 120, [], []
    for i in range(count):
        lines += [f"%{2 * i}: f32[]{{}} cpu = input s{i}", f"%{2 * i + 1}: f32[9]{{1}} cuda:0 = input p{i}"]
    new = 2 * count
    for i in range(count):
        lines += [
            f"%{new}: f32[]{{}} cpu = aten::add.Tensor(%{2 * i}, 1, 1)",
            f"%{new + 1}: f32[]{{}} cpu = aten::sqrt.default(%{new})",
            f"%{new + 2}: f32[9]{{1}} cuda:0 = aten::div.Tensor(%{2 * i + 1}, %{new + 1})",
        ]
        results += [f"%{new}", f"%{new + 2}"]
        new += 3
    graph = "\n".join(lines) + f"\nreturn ({', '.join(results)})\n"
    text, _ = runtime.host_kernels(graph, [])
    assert text.count("graphlift::host_kernel") == 1 and text.count("aten::") == count
    writes = [(2 * i + 1, 2 * i + 1) for i in range(count)]
    kernels = runtime.cuda_texts(text, 1, 90, writes)
    assert len(kernels) == 2 and "gl_table" in kernels[0], "one launch, in two variants"
