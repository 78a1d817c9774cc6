"""Shape rules against eager: dtype, device, sizes, strides of every result, over the samples table."""

import pytest
import samples_attention  # noqa: F401
import samples_factories  # noqa: F401
import samples_grids  # noqa: F401
import samples_indexing  # noqa: F401
import samples_layers  # noqa: F401
import samples_pointwise  # noqa: F401
import samples_reductions  # noqa: F401
import samples_steps  # noqa: F401
import samples_views  # noqa: F401
import torch
from making import Make
from rules import KERNEL_ERRORS, eager, infer, ops, overlaps_itself
from samples import TABLE

NAMES = sorted(ops.names())
# Rows whose rule answers for CUDA alone.
CUDA_ONLY = {
    "aten::" + name
    for name in """mm.dtype bmm.dtype _fused_rms_norm.default _fused_rms_norm_backward.default
    cudnn_batch_norm.default cudnn_batch_norm_backward.default _scaled_dot_product_flash_attention.default
    _scaled_dot_product_flash_attention_backward.default _scaled_dot_product_efficient_attention.default
    _scaled_dot_product_efficient_attention_backward.default _thnn_fused_lstm_cell.default _cudnn_rnn.default""".split()
}


def test_every_row_has_a_sample():
    assert [name for name in NAMES if name not in TABLE] == []


def test_every_sample_has_a_row():
    assert [name for name in TABLE if name not in set(NAMES)] == []


def show(sample):
    def one(value):
        if isinstance(value, torch.Tensor):
            return f"{value.dtype}{list(value.shape)}{list(value.stride())}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(one, value)) + "]"
        return repr(value)

    return ", ".join([one(a) for a in sample.args] + [f"{k}={one(v)}" for k, v in sample.kwargs.items()])


def problem(name, sample):
    """What is wrong with the rule's answers, or None."""
    shown = show(sample)
    answers = {mode: infer(name, sample, mode) for mode in ("constant", "duck", "distinct")}
    truth = eager(name, sample)
    for mode, (answer, env) in answers.items():
        if not env.guards_hold():
            return f"{shown}: {mode}: guards do not hold: {env.guards()}"
        if isinstance(truth, Exception):
            if answer is not None and not any(words in str(truth) for words in KERNEL_ERRORS):
                return f"{shown}: eager raises {str(truth)[:200]}, the rule says {answer}"
        elif answer is None:
            in_place = name.partition(".")[0].endswith("_") and overlaps_itself(sample.args[0])
            if not sample.outside and not in_place:
                return f"{shown}: {mode}: declined; eager gives {truth}"
        elif answer != truth:
            return f"{shown}: {mode}: {answer}; eager gives {truth}"
    return None


@pytest.mark.parametrize("name", [name for name in NAMES if name in TABLE])
def test_rule_equals_eager(name):
    count, answered, wrong = 0, 0, []
    for generator in TABLE[name]:
        for sample in generator(Make()):
            count += 1
            error = problem(name, sample)
            if error:
                wrong.append(error)
            else:
                answered += infer(name, sample, "constant")[0] is not None
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:6])
    assert answered > 0 or name in CUDA_ONLY
