"""Every lowered operator on every sample of the operator table: values, sizes and strides are eager's, and a kernel ran."""

import pytest
import torch
from checking import NAMES, show
from closeness import close
from making import Make
from rules import overload
from samples import TABLE

import graphlift
from graphlift import _C

pytestmark = [
    pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}"),
    pytest.mark.without_passes,
]

# Fresh tensors that may look at their operand's memory here; a region then hands out a copy, whose strides are its own.
COPIED = {"aten::_unsafe_view.default", "aten::lift_fresh.default"}
# Nothing is computed when these are called alone.
MOVED = COPIED | {"aten::detach.default", "aten::cat.default", "aten::stack.default"}
# Lowered where sizes are constant (of a group norm, the number of channels), or tied to each other as autograd has them.
CONSTANT = {
    f"aten::{name}.default"
    for name in (
        "native_group_norm native_group_norm_backward repeat constant_pad_nd slice_scatter slice_backward select_backward"
    ).split()
}
# Eager keeps results of its first pass in 16 bits: a kernel is right where it is at least as close to those in double.
ROUNDED_BETWEEN = {"aten::native_batch_norm_backward.default"}
LOWERED = [name for name in NAMES if name in TABLE and name in set(_C.lowered_operators())]
# Samples that are more of the same for kernels.
MOST_SAMPLES = 60


def run(function, sample):
    """What the call gives, or the exception."""
    try:
        with torch.no_grad():
            return function(*sample.args, **sample.kwargs)
    except Exception as error:  # noqa: BLE001: eager's own complaint is the expectation
        return error


def samples_of(name, device="cpu", most=MOST_SAMPLES):
    found = [sample for generator in TABLE[name] for sample in generator(Make(device))]
    step = max(1, len(found) // most)
    return found[::step]


def is_closer(operator, sample, eager, got):
    """Than eager's 16-bit results to what eager gives in double."""
    wide = [a.double() if isinstance(a, torch.Tensor) and a.dtype.itemsize == 2 else a for a in sample.args]
    exact = operator(*wide, **sample.kwargs)
    kept = [(e, a, b) for e, a, b in zip(exact, eager, got, strict=True) if e is not None]

    def error(exact, rounded):
        return (exact - rounded.double()).abs().max().item()

    return all(b.dtype.itemsize == 2 and error(e, b) <= error(e, a) for e, a, b in kept)


def problem(name, sample, dynamic=False):
    operator = overload(name)
    eager = run(operator, sample)
    if isinstance(eager, Exception):
        return None
    graphlift.reset()
    compiled = graphlift.compile(lambda *args, **kwargs: operator(*args, **kwargs), dynamic=dynamic)
    got = run(compiled, sample)
    if isinstance(got, Exception):
        return f"{show(sample)}: {type(got).__name__}: {str(got)[:300]}"
    different = close(eager.contiguous(), got.contiguous()) if name in COPIED else close(eager, got)
    if different and name in ROUNDED_BETWEEN and is_closer(operator, sample, eager, got):
        return None
    return f"{show(sample)}: {different}" if different else None


@pytest.mark.parametrize("name", LOWERED)
def test_values_equal_eager(name):
    before = graphlift.counters()["kernels"]
    wrong = [text for text in (problem(name, sample) for sample in samples_of(name)) if text]
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:5])
    views = all(isinstance(t, torch.Tensor) and t._is_view() for t in _first_results(name))
    assert views or name in MOVED or graphlift.counters()["kernels"] > before, "no kernel was made"


@pytest.mark.parametrize("name", LOWERED)
def test_values_with_symbolic_sizes_equal_eager(name):
    before = graphlift.counters()["kernels"]
    wrong = [text for sample in samples_of(name, most=24) if (text := problem(name, sample, dynamic=True))]
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:5])
    views = all(isinstance(t, torch.Tensor) and t._is_view() for t in _first_results(name))
    assert views or name in MOVED | CONSTANT or graphlift.counters()["kernels"] > before, "no kernel was made"


def _first_results(name):
    for sample in samples_of(name):
        result = run(overload(name), sample)
        if not isinstance(result, Exception):
            return result if isinstance(result, (list, tuple)) else [result]
    return []
