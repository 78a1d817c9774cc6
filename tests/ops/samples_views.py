"""Samples of views, copies and gradients of views."""

import torch
from making import BF16, C64, F16, F32, F64, I32, I64, layouts
from rules import call
from samples import samples


@samples("alias detach lift lift_fresh lift_fresh_copy clone")
def whole(make):
    for tensor in layouts(make):
        yield call(tensor)
    yield call(make(6)[2:])


@samples("detach_")
def detach_in_place(make):
    yield call(make(2, 3))


@samples("clone")
def clone_in_format(make):
    for tensor in layouts(make):
        for form in (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d):
            yield call(tensor, memory_format=form)


@samples("_to_copy")
def to_copy(make):
    for tensor in layouts(make):
        yield call(tensor, dtype=F64)
        yield call(tensor, dtype=BF16, memory_format=torch.contiguous_format)
        yield call(tensor, device=torch.device("cpu"))
        yield call(tensor, memory_format=torch.channels_last)


@samples("view _unsafe_view")
def view(make):
    for tensor in (
        make(2, 3, 4),
        make.last(2, 3, 4, 4),
        make(4, 6).t(),
        make.gaps(4, 6),
        make(2, 1, 12).expand(2, 2, 12)[:, :1],
        make.strided((2, 3, 4), (24, 8, 2), 3),
        make.permuted(2, 3, 4, order=(1, 0, 2)),
    ):
        for sizes in (
            [-1],
            [24],
            [2, 12],
            [6, 4],
            [2, 3, 4],
            [2, -1],
            [2, 3, 2, 2],
            [4, 6],
            [1, 24, 1],
            [2, 1, 3, 1, 4],
            [5, 5],
            [-1, -1],
            [-1, 5],
        ):
            yield call(tensor, sizes)
    yield call(make(0, 3), [3, 0])
    yield call(make(0, 3), [0, 3])
    yield call(make(3, 0).t(), [0, 3])
    yield call(make(0, 3), [-1, 0])
    yield call(make(0, 3), [-1, 3])
    yield call(make(), [1, 1])
    yield call(make(), [])
    yield call(make(1), [])
    yield call(make.strided((4, 1), (1, 7)), [2, 2, 1])
    yield call(make.strided((1, 4), (9, 2)), [4])


@samples("view.dtype")
def view_dtype(make):
    for tensor in (make(2, 4), make(4, 8)[::2], make(8)[2:], make.strided((2, 4), (8, 1), 4), make(2, 4).t(), make()):
        for dtype in (I32, F16, F64, I64, torch.uint8):
            yield call(tensor, dtype)


@samples("expand expand_copy")
def expand(make):
    for tensor, sizes in (
        (make(2, 1), [2, 3]),
        (make(3), [2, 3]),
        (make(3), [2, -1]),
        (make(), [2, 3]),
        (make(1, 3), [-1, 3]),
        (make(1, 3).t(), [2, 3, 4]),
        (make(2, 3), [1, 2, 3]),
        (make(2, 3), [1, 1, 2, 3]),
        (make(2), [3]),
        (make(1), [0]),
        (make(2, 3), [3]),
        (make(3), [-1, 3]),
        (make.last(2, 1, 4, 5), [2, 3, 4, 5]),
        (make(), [1, 1]),
    ):
        yield call(tensor, sizes)


@samples("permute permute_copy")
def permute(make):
    yield call(make(2, 3, 4), [2, 0, 1])
    yield call(make(2, 3, 4), [-1, 1, 0])
    yield call(make(), [])
    yield call(make(2, 3), [0, 0])
    yield call(make(2, 3), [0])


@samples("transpose.int transpose_copy.int transpose_")
def transpose(make):
    for tensor in layouts(make):
        yield call(tensor, 0, -1)
    yield call(make(2, 3, 4), 1, 2)
    yield call(make(2, 3, 4), 1, 3)


@samples("t t_copy t_")
def matrix_transpose(make):
    for tensor in layouts(make):
        yield call(tensor)


@samples("unsqueeze unsqueeze_copy unsqueeze_")
def unsqueeze(make):
    for tensor in layouts(make):
        for dim in (0, 1, -1, 9):
            yield call(tensor, dim)


@samples("squeeze squeeze_copy squeeze_")
def squeeze(make):
    for tensor in layouts(make):
        yield call(tensor)
    yield call(make(1, 2, 1, 3))


@samples("squeeze.dim squeeze_copy.dim squeeze_.dim")
def squeeze_dim(make):
    for dim in (0, 1, -2, 5):
        yield call(make(1, 2, 1, 3), dim)
    yield call(make(), 0)


@samples("squeeze.dims squeeze_copy.dims squeeze_.dims")
def squeeze_dims(make):
    for dims in ([0], [0, 2], [-2, 1], [], [0, 0]):
        yield call(make(1, 2, 1, 3), dims)


@samples("select.int select_copy.int")
def select(make):
    for tensor in layouts(make):
        yield call(tensor, 0, 0)
        yield call(tensor, -1, -1)
        yield call(tensor, 1, 2)
    yield call(make(6)[2:], 0, 1)


@samples("slice.Tensor slice_copy.Tensor")
def slice_rows(make):
    for tensor in layouts(make):
        yield call(tensor)
        yield call(tensor, 0, 1)
    for start, end, step in (
        (0, 3, 1),
        (1, None, 1),
        (None, -1, 1),
        (-4, -2, 1),
        (2, 100, 1),
        (5, 2, 1),
        (0, 7, 2),
        (1, 7, 3),
        (0, 9223372036854775807, 1),
        (7, 9, 1),
        (-100, 3, 1),
        (0, 3, 0),
    ):
        yield call(make(7, 2), 0, start, end, step)
        yield call(make(2, 7), 1, start, end, step)


@samples("split.Tensor split_copy.Tensor unsafe_split.Tensor")
def split(make):
    for size in (1, 2, 3, 7, 9, 0, -1):
        yield call(make(7, 2), size)
        yield call(make(2, 7), size, -1)
    yield call(make(0, 2), 2)
    yield call(make(0, 2), 0)
    yield call(make.last(2, 6, 3, 3), 2, 1)


@samples("split_with_sizes split_with_sizes_copy unsafe_split_with_sizes")
def split_with_sizes(make):
    yield call(make(7, 2), [3, 4])
    yield call(make(2, 7), [3, 2, 2], -1)
    yield call(make(7, 2), [3, 3])
    yield call(make(7, 2), [7, 0])


@samples("unbind.int unbind_copy.int")
def unbind(make):
    for tensor in layouts(make):
        yield call(tensor)
        yield call(tensor, -1)


@samples("as_strided as_strided_ _reshape_alias")
def as_strided(make):
    yield call(make(24), [2, 3], [3, 1])
    yield call(make(4, 6).t(), [2, 3], [1, 2])
    yield call(make(24)[4:], [2, 2], [5, 1])


@samples("as_strided as_strided_")
def as_strided_with_offset(make):
    yield call(make(24), [2, 3], [3, 1], 5)
    yield call(make(24)[4:], [2, 2], [5, 1], 2)


@samples("diagonal diagonal_copy")
def diagonal(make):
    for offset in (0, 1, -1, 2, -3, 9):
        yield call(make(3, 4), offset)
        yield call(make(2, 3, 4), offset, -1, 0)
        yield call(make(2, 3, 4), offset, 1, 2)
    yield call(make(3), 0)


@samples("unfold unfold_copy")
def unfold(make):
    yield call(make(2, 7), 1, 3, 1)
    yield call(make(2, 7), -1, 3, 2)
    yield call(make(7, 2), 0, 7, 3)
    yield call(make(7, 2), 0, 8, 3)


@samples("view_as_real view_as_real_copy")
def as_real(make):
    yield call(make(2, 3, dtype=C64))
    yield call(make(dtype=C64))
    yield call(make(4, 3, dtype=C64)[1:].t())
    yield call(make(2))


@samples("view_as_complex view_as_complex_copy")
def as_complex(make):
    yield call(make(3, 2))
    yield call(make(2))
    yield call(make(2, 3, 2, dtype=F64).transpose(0, 1))
    yield call(make(5, 2)[1:])
    yield call(make(2, 3))
    yield call(make(2, 3, dtype=F32).t())
    yield call(make(3, 2, dtype=BF16))


@samples("copy copy_")
def copy(make):
    for tensor in layouts(make):
        yield call(tensor, make(*tensor.shape))
        yield call(tensor, make(dtype=I64))
    yield call(make(2, 3), make(3, dtype=F64))
    yield call(make(3), make(2, 3))
    yield call(make(6)[2:], make(4))


@samples("slice_backward")
def slice_backward(make):
    yield call(make(3, 2), [7, 2], 0, 1, 4, 1)
    yield call(make.last(2, 3, 2, 2), [2, 3, 4, 2], 2, 0, 2, 1)


@samples("select_backward")
def select_backward(make):
    yield call(make(2), [7, 2], 0, 1)
    yield call(make(2, 3).t(), [3, 5, 2], 1, -1)


@samples("diagonal_backward")
def diagonal_backward(make):
    yield call(make(3), [3, 4], 0, 0, 1)


@samples("unfold_backward")
def unfold_backward(make):
    yield call(make(2, 5, 3), [2, 7], 1, 3, 1)


@samples("slice_scatter")
def slice_scatter(make):
    for tensor in (make(7, 2), make(2, 7).t(), make.gaps(7, 2), make(9, 2)[2:]):
        yield call(tensor, make(3, 2), 0, 1, 4)
        yield call(tensor, make(4, 2), 0, None, None, 2)
        yield call(tensor, make(2, 2), 0, 1, 4)
    yield call(make(1, 4).expand(3, 4), make(3, 2), 1, 0, 2)


@samples("select_scatter")
def select_scatter(make):
    for tensor in (make(7, 2), make(2, 7).t(), make.gaps(7, 2)):
        yield call(tensor, make(2), 0, 1)
        yield call(tensor, make(7), -1, -1)
        yield call(tensor, make(3), 0, 1)


@samples("diagonal_scatter")
def diagonal_scatter(make):
    for tensor in (make(3, 4), make(4, 3).t()):
        yield call(tensor, make(3))
        yield call(tensor, make(2))


@samples("as_strided_scatter")
def as_strided_scatter(make):
    yield call(make(4, 5), make(2, 3), [2, 3], [5, 1])
    yield call(make(5, 4).t(), make(2, 3), [2, 3], [5, 1], 1)
