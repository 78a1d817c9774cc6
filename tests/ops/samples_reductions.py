"""Samples of reductions, scans, softmax, sorting and matrix products."""

import torch
from making import BF16, BOOL, C64, F16, F32, F64, I32, I64, NUMBER_DTYPES, U8, layouts
from rules import call
from samples import samples

WHOLE = "max min all any median nanmedian"


@samples(WHOLE, "sum prod mean norm.Scalar")
def whole(make):
    for dtype in NUMBER_DTYPES:
        yield call(make(2, 3, dtype=dtype))
        yield call(make(dtype=dtype))
    for tensor in layouts(make):
        yield call(tensor)


@samples("sum prod mean")
def whole_to_dtype(make):
    for dtype in (F32, F64, I64, F16):
        yield call(make(2, 3), dtype=dtype)
        yield call(make(2, 3, dtype=I64), dtype=dtype)


NAMED_DIMS = ([0], [-1], [0, 1], [0, 0], [5])
DIMS = (*NAMED_DIMS, [], None)


@samples("sum.dim_IntList mean.dim nansum")
def over_dims(make):
    for dim in DIMS:
        for keep in (False, True):
            for tensor in layouts(make):
                yield call(tensor, dim, keep)
            yield call(make(2, 3, dtype=I64), dim, keep)
            yield call(make(2, 3, dtype=I64), dim, keep, dtype=F32)
            yield call(make(2, 3, dtype=BF16), dim, keep, dtype=F32)
            yield call(make(2, 3, dtype=BOOL), dim, keep)


@samples("amax amin all.dims any.dims")
def over_listed_dims(make):
    yield from over_named_dims(make, [[], *NAMED_DIMS])


@samples("logsumexp")
def over_one_or_more_dims(make):
    yield from over_named_dims(make, NAMED_DIMS)


def over_named_dims(make, dims):
    for dim in dims:
        for keep in (False, True):
            for tensor in layouts(make):
                yield call(tensor, dim, keep)
            for dtype in (I64, BOOL, U8):
                yield call(make(2, 3, dtype=dtype), dim, keep)


@samples("logsumexp")
def over_no_dims(make):
    yield call(make(2, 3), [], True)
    yield call(make(2, 3), [], False, outside=True)


@samples("all.dims any.dims")
def over_all_dims(make):
    yield call(make(2, 3, dtype=BOOL), None, True)
    yield call(make(2, 3, dtype=BOOL))


@samples("max.dim min.dim all.dim any.dim prod.dim_int median.dim nanmedian.dim mode")
def over_one_dim(make):
    for dim in (0, -1, 7):
        for keep in (False, True):
            for tensor in layouts(make):
                yield call(tensor, dim, keep)
            for dtype in (I64, BOOL, U8):
                yield call(make(2, 3, dtype=dtype), dim, keep)


@samples("argmax argmin")
def positions(make):
    for dim in (None, 0, -1, 7):
        for keep in (False, True):
            for tensor in layouts(make):
                yield call(tensor, dim, keep)
            yield call(make(2, 3, dtype=I64), dim, keep)


@samples("aminmax")
def both_extremes(make):
    for tensor in layouts(make):
        yield call(tensor)
        yield call(tensor, dim=0)
        yield call(tensor, dim=-1, keepdim=True)
        yield call(tensor, keepdim=True, outside=tensor.is_cuda)


@samples("var.correction std.correction var_mean.correction std_mean.correction")
def spread(make):
    for dim in DIMS:
        for tensor in layouts(make):
            yield call(tensor, dim, correction=0)
            yield call(tensor, dim, correction=1, keepdim=True)
    yield call(make(2, 3, dtype=I64))
    yield call(make(2, 3, dtype=C64))
    yield call(make(2, 3, dtype=F16), [1])


@samples("linalg_vector_norm")
def vector_norm(make):
    for tensor in layouts(make):
        yield call(tensor)
        yield call(tensor, 1, [0], True)
        yield call(tensor, 2, [-1], False, dtype=F64)
    yield call(make(2, 3, dtype=I64))
    yield call(make(2, 3, dtype=C64), 2, None, True)


@samples("norm.ScalarOpt_dim")
def norm(make):
    for tensor in layouts(make):
        yield call(tensor, 2, [0])
        yield call(tensor, None, [-1], True)


@samples("norm.ScalarOpt_dim_dtype")
def norm_to_dtype(make):
    yield call(make(2, 3), 2, [0], True, dtype=F64)


@samples("norm.ScalarOpt_dtype")
def whole_norm_to_dtype(make):
    yield call(make(2, 3), 2, dtype=F64)


@samples("count_nonzero")
def count(make):
    yield call(make(2, 3))
    yield call(make(2, 3), 1)
    yield call(make(2, 3, dtype=BOOL), -2)


@samples("count_nonzero.dim_IntList")
def count_over_dims(make):
    yield call(make(2, 3), [0])
    yield call(make(2, 3), [0, 1])


@samples("trace")
def trace(make):
    yield call(make(3, 4))
    yield call(make(3, 4, dtype=I32))
    yield call(make(3))


@samples("cumsum cumprod cumsum_ cumprod_ logcumsumexp cummax cummin")
def scans(make):
    for tensor in layouts(make):
        yield call(tensor, 0)
        yield call(tensor, -1)
    yield call(make(2, 3), 2)
    for dtype in (I64, I32, BOOL, F16):
        yield call(make(2, 3, dtype=dtype), 1)


@samples("cumsum cumprod")
def scans_to_dtype(make):
    yield call(make(2, 3), 0, dtype=F64)
    yield call(make(2, 3, dtype=I32), 0, dtype=F32)


@samples("_softmax _log_softmax")
def softmax(make):
    for tensor in layouts(make):
        yield call(tensor, 0, False)
        yield call(tensor, -1, False)
    yield call(make(2, 3, dtype=BF16), 1, False)
    yield call(make(2, 3, dtype=F16), 1, True)
    yield call(make(2, 3, dtype=I64), 1, False)
    yield call(make(2, 3), 2, False)


@samples("_softmax_backward_data _log_softmax_backward_data")
def softmax_backward(make):
    for tensor in layouts(make):
        yield call(tensor, make(*tensor.shape), 0, F32)
        yield call(make(*tensor.shape), tensor, -1, F32)
    yield call(make(2, 3, dtype=BF16), make(2, 3, dtype=BF16), 1, BF16)


@samples("_safe_softmax")
def safe_softmax(make):
    for tensor in layouts(make):
        yield call(tensor, -1)
        yield call(tensor, 0, F64)


@samples("sort")
def sort(make):
    for tensor in layouts(make):
        yield call(tensor)
        yield call(tensor, 0, True)
    yield call(make(2, 3, dtype=I64), 1)
    yield call(make(2, 3, dtype=C64), 1)


@samples("sort.stable")
def stable_sort(make):
    for tensor in layouts(make):
        yield call(tensor, stable=True)
        yield call(tensor, stable=False, dim=0, descending=True)


@samples("topk")
def topk(make):
    for tensor in layouts(make):
        yield call(tensor, 1)
        yield call(tensor, 2, 0)
    yield call(make(2, 5, dtype=I64), 3, 1, False, False)
    yield call(make(2, 5), 6)


@samples("kthvalue")
def kthvalue(make):
    for tensor in layouts(make):
        yield call(tensor, 1)
        yield call(tensor, 1, 0, True)


@samples("histc")
def histc(make):
    yield call(make(7), 5, 0, 1)
    yield call(make(2, 3))


def strided_matrices(make, rows, columns, dtype=F32):
    yield make(rows, columns, dtype=dtype)
    yield make(columns, rows, dtype=dtype).t()
    yield make.gaps(rows, columns, dtype=dtype)


@samples("mm")
def mm(make):
    for left in strided_matrices(make, 2, 3):
        for right in strided_matrices(make, 3, 4):
            yield call(left, right)
    yield call(make(2, 3, dtype=I64), make(3, 4, dtype=I64))
    yield call(make(2, 3, dtype=BF16), make(3, 4, dtype=BF16))
    yield call(make(2, 3), make(3, 4, dtype=F64))
    yield call(make(2, 3), make(4, 3))
    yield call(make(3), make(3, 4))
    yield call(make(0, 3), make(3, 4))
    yield call(make(2, 0), make(0, 4))


@samples("addmm addmm_ _addmm_activation")
def addmm(make):
    for left in strided_matrices(make, 2, 3):
        for right in strided_matrices(make, 3, 4):
            for bias in (make(4), make(2, 4), make(4, 2).t(), make(2, 1), make(), make(3)):
                yield call(bias, left, right)
    yield call(make(2, 4, dtype=F64), make(2, 3), make(3, 4))
    yield call(make(2, 4, dtype=BF16), make(2, 3, dtype=BF16), make(3, 4, dtype=BF16), beta=0, alpha=2)


@samples("bmm")
def bmm(make):
    for left in (make(2, 3, 4), make(2, 4, 3).transpose(1, 2), make(3, 2, 4).transpose(0, 1)):
        for right in (make(2, 4, 5), make(2, 5, 4).transpose(1, 2), make(1, 4, 5).expand(2, 4, 5)):
            yield call(left, right)
    yield call(make(2, 3, 4), make(3, 4, 5))
    yield call(make(2, 3, 4), make(2, 5, 5))
    yield call(make(0, 3, 4), make(0, 4, 5))


@samples("baddbmm baddbmm_")
def baddbmm(make):
    for bias in (make(2, 3, 5), make(5), make(3, 1), make(2, 5, 3).transpose(1, 2), make(4)):
        yield call(bias, make(2, 3, 4), make(2, 4, 5))
        yield call(bias, make(2, 4, 3).transpose(1, 2), make(2, 4, 5), beta=0)


@samples("addbmm addbmm_")
def addbmm(make):
    for bias in (make(3, 5), make(5), make(5, 3).t()):
        yield call(bias, make(2, 3, 4), make(2, 4, 5), outside=bias.dim() == 1)


@samples("mv")
def mv(make):
    for matrix in strided_matrices(make, 2, 3):
        yield call(matrix, make(3))
    yield call(make(2, 3), make(2))


@samples("addmv addmv_")
def addmv(make):
    for matrix in strided_matrices(make, 2, 3):
        yield call(make(2), matrix, make(3))
        yield call(make(1), matrix, make(3))
        yield call(make(), matrix, make(3))
    # Torch gives some products of an empty matrix the size of what is added.
    for bias in (make(), make(1), make(2)):
        yield call(bias, make(2, 0), make(0), outside=bias.is_cuda)
        yield call(bias, make(2, 0), make(0), beta=0)
    yield call(make(), make(0, 3), make(3), outside=make.device != "cpu")


@samples("dot vdot")
def dot(make):
    yield call(make(3), make(3))
    yield call(make(6)[::2], make(3))
    yield call(make(3), make(4))
    yield call(make(3, dtype=I64), make(3, dtype=I64))


@samples("bmm.dtype")
def batch_product_to_dtype(make):
    yield call(make(2, 8, 8, dtype=BF16), make(2, 8, 8, dtype=BF16), F32, outside=True)


@samples("mm.dtype")
def product_to_dtype(make):
    yield call(make(2, 3, dtype=BF16), make(3, 4, dtype=BF16), F32, outside=True)


@samples("_grouped_mm")
def grouped_mm(make):
    offsets = torch.tensor([8, 16], dtype=I32).to(make.device)
    yield call(make(16, 16, dtype=BF16), make(2, 16, 8, dtype=BF16), offsets)
    yield call(make(16, 16, dtype=BF16), make(16, 24, dtype=BF16), offsets)
    yield call(make(2, 8, 16, dtype=BF16), make(16, 16, dtype=BF16), offsets)
    yield call(make(2, 8, 16, dtype=BF16), make(2, 16, 8, dtype=BF16))
    yield call(make(16, 16, dtype=BF16), make(2, 8, 16, dtype=BF16).transpose(1, 2), offsets)


@samples("_cdist_backward")
def cdist_backward(make):
    yield call(make(3, 5), make(3, 4), make(5, 4), 2.0, make(3, 5))
    yield call(make(2, 3, 5), make(2, 3, 4), make(2, 5, 4), 2.0, make(2, 3, 5))
    yield call(make(2, 3, 5), make(2, 4, 3).transpose(1, 2), make(2, 5, 4), 1.0, make(2, 3, 5))


@samples("_cdist_forward")
def cdist(make):
    yield call(make(3, 4), make(5, 4), 2.0, None)
    yield call(make(2, 3, 4), make(5, 4), 1.0, None)
    yield call(make(2, 1, 3, 4), make(6, 5, 4), 2.0, 1)
