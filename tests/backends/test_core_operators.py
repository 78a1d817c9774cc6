"""Each operator of torch's core set has a way to native code: a row of lowering, the backend's own, or torch's with a reason."""

import torch

from graphlift import _C

# The CPU backend's own products, convolutions and sums of rows (index_put: where it accumulates).
OWN = """addmm.default bmm.default mm.default convolution.default convolution_backward.default
    embedding_dense_backward.default index_put.default"""

# Reason -> operators that stay torch's calls.
TORCHS = {
    "views; what lies in memory as the program says needs no code": "as_strided.default diagonal.default",
    "memory without values": "empty.memory_format empty_strided.default",
    "draws advance torch's generator in torch's order": "native_dropout.default rand.default randn.default randperm.default",
    "places in memory come from data, and a wrong one is an exception": """
        _embedding_bag.default masked_scatter.default
        scatter.value scatter.src scatter_add.default scatter_reduce.two""",
    "the size of the result comes from data": "nonzero.default",
    "an order over elements, not a loop of independent ones": "cumsum.default sort.default topk.default",
    "a place beside the value": "argmax.default argmin.default max.dim min.dim",
    "windows over space": """
        _adaptive_avg_pool2d.default _adaptive_avg_pool2d_backward.default _adaptive_avg_pool3d.default
        avg_pool2d.default avg_pool2d_backward.default avg_pool3d.default col2im.default max_pool2d_with_indices.default
        max_pool2d_with_indices_backward.default max_pool3d_with_indices.default grid_sampler_2d.default
        upsample_bilinear2d.vec upsample_nearest2d.vec""",
    "parts of the result come from elsewhere": """
        reflection_pad1d.default reflection_pad2d.default reflection_pad3d.default
        replication_pad2d.default replication_pad3d.default""",
    "pairs of rows": "_cdist_forward.default _pdist_forward.default",
    "a library's transform": "_fft_c2r.default _fft_r2c.default",
    "its outputs have sizes of their own": "_native_batch_norm_legit_no_training.default",
}

# Never calls of a graph.
NO_CALLS = {
    "numbers that capture has already": """
        _local_scalar_dense.default sym_numel.default sym_size.int sym_storage_offset.default sym_stride.int""",
    "an out= form: capture records the functional one": "atan2.out",
    "torch takes them apart before capture sees them": "adaptive_avg_pool1d.default avg_pool1d.default var.dim",
    "a break: memory is replaced": "resize_.default",
    "a question that capture answers": "sym_is_contiguous.default",
}


def names(text):
    return {f"aten::{name}" for name in text.split()}


def core_operators():
    """All overloads with torch's tag, not only those that somebody has used."""
    found = set()
    for full in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = full.partition("::")
        packet, _, which = rest.partition(".")
        if namespace != "aten":
            continue
        overload = getattr(getattr(torch.ops.aten, packet), which or "default")
        if torch.Tag.core in overload.tags:
            found.add(f"aten::{packet}.{which or 'default'}")
    return found


def table():
    """Operator -> the words that name its way; each has one."""
    rows = [(name, "lowered") for name in _C.lowered_operators()] + [(name, "own") for name in names(OWN)]
    for reasons in (TORCHS, NO_CALLS):
        rows += [(name, reason) for reason, text in reasons.items() for name in names(text)]
    assert len(rows) == len({name for name, _ in rows}), "an operator with two ways"
    return dict(rows)


def test_each_core_operator_has_a_way():
    missing = core_operators() - set(table())
    assert not missing, f"neither lowered nor torch's by a row: {sorted(missing)}"


def test_the_table_is_about_core_operators():
    """Which of them are core differs a little between versions of torch."""
    explicit = names(" ".join([OWN, *TORCHS.values(), *NO_CALLS.values()]))
    assert len(explicit - core_operators()) <= 5
    assert len(core_operators()) > 180
