"""Shape rules against eager: dtype, device, sizes, strides and offset of every result, over the samples table."""

import pytest
import torch
from checking import NAMES, check, show
from ones import check_ones
from samples import TABLE

# Rows whose rule answers for CUDA alone.
CUDA_ONLY = {
    "aten::" + name
    for name in """mm.dtype bmm.dtype _fused_rms_norm.default _fused_rms_norm_backward.default
    cudnn_batch_norm.default cudnn_batch_norm_backward.default _scaled_dot_product_flash_attention.default
    _scaled_dot_product_flash_attention_backward.default _scaled_dot_product_efficient_attention.default
    _scaled_dot_product_efficient_attention_backward.default _scaled_dot_product_cudnn_attention.default
    _scaled_dot_product_cudnn_attention_backward.default _thnn_fused_lstm_cell.default _cudnn_rnn.default""".split()
}
SAMPLED = [name for name in NAMES if name in TABLE]


def test_every_row_has_a_sample():
    assert [name for name in NAMES if name not in TABLE] == []


def test_every_sample_has_a_row():
    assert [name for name in TABLE if name not in set(NAMES)] == []


@pytest.mark.parametrize("name", SAMPLED)
def test_rule_equals_eager(name):
    count, answered, wrong = check(name)
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:6])
    assert answered > 0 or name in CUDA_ONLY


# Families whose kernels look at sizes. Others may read beyond tensors whose sizes do not go together, which is what the
# rest of a sample's sizes does with one that became 1, and rules of gradients leave such sizes to them.
SAFE = {"samples_pointwise", "samples_views", "samples_reductions", "samples_factories"}
BY_SIZE = [
    name
    for name in SAMPLED
    if {generator.__module__ for generator in TABLE[name]} <= SAFE and "backward" not in name and "grouped" not in name
]


@pytest.mark.parametrize("name", BY_SIZE)
def test_rule_equals_eager_where_a_size_is_one(name):
    count, wrong = check_ones(name, show)
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:6])


def test_sizes_of_one_are_let_in():
    counts = {name: check_ones(f"aten::{name}", show)[0] for name in ("add.Tensor", "view.default", "sum.dim_IntList")}
    assert all(counts.values()), counts


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", SAMPLED)
def test_rule_equals_eager_on_cuda(name):
    count, _, wrong = check(name, "cuda")
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:6])
