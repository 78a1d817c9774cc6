"""Every operator with each of its sizes made 0 or 1, on both backends: values, sizes and strides are eager's."""

import pytest
import torch
from checking import NAMES, show
from closeness import close
from rules import overload
from samples import TABLE
from shrunk import shrunk

import graphlift

BACKENDS = ("reference", "native")
MOST_CALLS = 6
# Kernels of torch's that read beyond tensors, or divide by zero, where sizes do not go together; with those of gradients.
UNSAFE = {"aten::_weight_norm_interface.default", "aten::_reshape_alias.default"}
UNSAFE_FAMILIES = {"samples_attention", "samples_steps"}
GIVEN = {"aten::lift", "aten::lift_fresh"}  # the argument again, for which there is no graph
# Some elements are nobody's.
UNWRITTEN = ("aten::empty", "aten::new_empty", "aten::_grouped_mm")


def is_asked(name):
    if name not in TABLE or name in UNSAFE or "backward" in name or name.startswith(UNWRITTEN):
        return False
    families = {generator.__module__ for generator in TABLE[name]}
    return not families & UNSAFE_FAMILIES and not overload(name)._schema.is_mutable


def run(function, sample):
    torch.manual_seed(0)
    with torch.no_grad():
        return function(*sample.args, **sample.kwargs)


def problem(operator, sample, eager, backend):
    graphlift.reset()
    compiled = graphlift.compile(lambda *args, **kwargs: operator(*args, **kwargs), backend=backend)
    different = close(eager, run(compiled, sample))
    nothing = operator.name() in GIVEN or eager == []
    if graphlift.graph_count() != (0 if nothing else 1) and not different:
        different = f"{graphlift.graph_count()} graphs"
    return f"{backend}: {show(sample)}: {different}" if different else None


def check(name):
    """Number of calls that eager answers, and what was wrong."""
    operator, count, wrong = overload(name), 0, []
    for sample in shrunk(name, MOST_CALLS):
        try:
            eager = run(operator, sample)
        except Exception:  # sizes that do not go together
            continue
        count += 1
        wrong += filter(None, (problem(operator, sample, eager, backend) for backend in BACKENDS))
    return count, wrong


@pytest.mark.parametrize("name", filter(is_asked, NAMES))
def test_values_equal_eager(name):
    _, wrong = check(name)
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:5])


def test_calls_are_answered():
    for name in ("add.Tensor", "mm.default", "native_layer_norm.default", "sum.dim_IntList", "index_select.default"):
        count, _ = check(f"aten::{name}")
        assert count >= 3, name
