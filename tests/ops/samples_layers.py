"""Samples of convolution, normalization and losses."""

import torch
from making import BF16, F16, F32, F64, I64, U8, layouts
from rules import call
from samples import samples


def images(make, channels=4, dtype=F32):
    yield make(2, channels, 7, 8, dtype=dtype)
    yield make.last(2, channels, 7, 8, dtype=dtype)


CONVOLUTIONS = (  # stride, padding, dilation, transposed, output_padding
    ([1, 1], [0, 0], [1, 1], False, [0, 0]),
    ([2, 1], [1, 2], [1, 1], False, [0, 0]),
    ([1, 1], [1, 1], [2, 1], False, [0, 0]),
    ([2, 2], [1, 0], [1, 1], True, [1, 0]),
    ([1, 1], [0, 0], [1, 1], True, [0, 0]),
)


def convolutions(make):
    """Arguments from input to groups."""
    for dtype in (F32, F64, BF16):
        for stride, padding, dilation, transposed, extra in CONVOLUTIONS:
            for image in images(make, dtype=dtype):
                for weight in images_as_weights(make, 6, 4, transposed, dtype):
                    for bias in (None, make(6, dtype=dtype)):
                        yield image, weight, bias, stride, padding, dilation, transposed, extra, 1
                for weight in images_as_weights(make, 6, 2, transposed, dtype, groups=2):
                    yield image, weight, None, stride, padding, dilation, transposed, extra, 2
                for weight in images_as_weights(make, 4, 1, transposed, dtype, groups=4):
                    yield image, weight, None, stride, padding, dilation, transposed, extra, 4
    for image in (make(2, 4, 9), make(2, 9, 4).transpose(1, 2), make(2, 1, 9).expand(2, 4, 9)):
        yield image, make(6, 4, 3), make(6), [1], [1], [1], False, [0], 1
        yield image, make(4, 1, 3), None, [2], [0], [1], False, [0], 4
        yield image, make(4, 6, 3), None, [2], [0], [1], True, [1], 1
    for image in (make(2, 4, 5, 6, 7), make.last(2, 4, 5, 6, 7)):
        yield image, make(6, 4, 3, 3, 3), make(6), [1, 1, 1], [1, 1, 1], [1, 1, 1], False, [0, 0, 0], 1
        yield image, make.last(6, 4, 3, 3, 3), None, [1, 2, 1], [1, 1, 0], [1, 1, 1], False, [0, 0, 0], 1
        yield image, make(4, 6, 3, 3, 3), None, [2, 2, 2], [1, 1, 1], [1, 1, 1], True, [0, 0, 0], 1
    yield make(1, 1, 7, 8), make(1, 1, 3, 3), None, [1], [0], [1], False, [0], 1
    yield make(2, 4, 1, 1), make(6, 4, 1, 1), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    yield make.last(2, 1, 7, 8), make(6, 1, 1, 1), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    yield make.gaps(2, 4, 7, 8), make(6, 4, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    yield make(2, 4, 7, 8), make(6, 4, 1, 1), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    yield make(2, 5, 7, 8), make(6, 4, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    yield make(2, 4, 2, 2), make(6, 4, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    yield make(2, 4, 7, 8), make(6, 4, 3, 3, dtype=F64), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    yield make(2, 4, 7, 8), make(6, 4, 3, 3), make(5), [1, 1], [0, 0], [1, 1], False, [0, 0], 1


def images_as_weights(make, out, per_group, transposed, dtype, groups=1):
    shape = (per_group * groups, out // groups, 3, 3) if transposed else (out, per_group, 3, 3)
    yield make(*shape, dtype=dtype)
    yield make.last(*shape, dtype=dtype)


@samples("convolution")
def convolution(make):
    for args in convolutions(make):
        yield call(*args)


@samples("convolution_backward")
def convolution_backward(make):
    narrow = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    for image, weight, bias, *rest in convolutions(make):
        # Without instructions for bfloat16 another kernel runs, which gives a dim of size 1 another stride.
        if image.dtype == BF16 and rest[-1] == 4 and not narrow:
            continue
        try:
            out = torch.ops.aten.convolution(image, weight, bias, *rest)
        except RuntimeError:
            continue
        sizes, hard = [out.shape[1]], image.dtype == F64 and rest[-1] == 4
        for grad in (out, out.contiguous()):
            yield call(grad, image, weight, sizes, *rest, [True, True, True], outside=hard)
        yield call(out, image, weight, None, *rest, [False, True, False], outside=hard)
        yield call(out, image, weight, sizes, *rest, [True, False, False])


@samples("native_layer_norm")
def layer_norm(make):
    for tensor in layouts(make):
        if tensor.dim():
            shape = list(tensor.shape[-1:])
            yield call(tensor, shape, make(*shape), make(*shape), 1e-5)
            yield call(tensor, shape, None, None, 1e-5)
            yield call(tensor, list(tensor.shape), None, None, 1e-5)
    yield call(make(2, 3, dtype=BF16), [3], make(3, dtype=BF16), make(3, dtype=BF16), 1e-5)
    yield call(make(2, 3, dtype=BF16), [3], make(3), make(3), 1e-5)
    yield call(make(2, 3, dtype=F64), [3], None, None, 1e-5)
    yield call(make(2, 3), [2], None, None, 1e-5)
    yield call(make(2, 3), [3], make(2), None, 1e-5)


@samples("native_layer_norm_backward")
def layer_norm_backward(make):
    for x in (make(2, 3, 4), make.permuted(2, 3, 4, order=(1, 2, 0)), make(2, 3, 4, dtype=BF16)):
        weight, bias = make(4, dtype=x.dtype), make(4, dtype=x.dtype)
        _, mean, rstd = torch.ops.aten.native_layer_norm(x, [4], weight, bias, 1e-5)
        for mask in ([True, True, True], [True, False, False], [False, True, True]):
            yield call(x, x, [4], mean, rstd, weight, bias, mask)
        yield call(x, x, [4], mean, rstd, None, None, [True, False, False])


@samples("native_group_norm")
def group_norm(make):
    for dtype in (F32, BF16, F64):
        for x in images(make, dtype=dtype):
            yield call(x, make(4, dtype=dtype), make(4, dtype=dtype), 2, 4, 56, 2, 1e-5)
            yield call(x, None, None, 2, 4, 56, 1, 1e-5)
    yield call(make(2, 4), make(4), make(4), 2, 4, 1, 2, 1e-5)
    yield call(make(2, 4, 5), None, None, 2, 4, 5, 2, 1e-5)
    yield call(make(2, 4, 7, 8, dtype=BF16), make(4), make(4), 2, 4, 56, 2, 1e-5)
    yield call(make(2, 8, 4).transpose(1, 2), None, None, 2, 4, 8, 2, 1e-5)


@samples("native_group_norm_backward")
def group_norm_backward(make):
    for x in images(make):
        if x.is_cuda and not x.is_contiguous():
            continue
        weight = make(4)
        _, mean, rstd = torch.ops.aten.native_group_norm(x, weight, weight, 2, 4, 56, 2, 1e-5)
        for grad in images(make):
            for mask in ([True, True, True], [True, False, False]):
                yield call(grad, x, mean, rstd, weight, 2, 4, 56, 2, mask)


def normalized(make):
    yield from images(make)
    yield from images(make, dtype=F64)
    yield from images(make, dtype=BF16)
    yield make(5, 4)
    yield make(2, 4, 6)
    yield make.last(2, 4, 3, 3, 3)
    yield make.gaps(2, 4, 5, 6)
    yield make.permuted(2, 4, 5, order=(0, 2, 1))
    yield make.last(2, 4, 1, 1)


def statistics(make, x, dtype):
    return [make(4, dtype=dtype) for _ in range(4)]


@samples("native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional")
def batch_norm(make):
    for x in normalized(make):
        for training in (True, False):
            yield call(x, *statistics(make, x, x.dtype), training, 0.1, 1e-5)
            yield call(x, None, None, *statistics(make, x, x.dtype)[:2], training, 0.1, 1e-5)
    x = make(2, 4, 5, 5, dtype=BF16)
    yield call(x, *statistics(make, x, F32), True, 0.1, 1e-5)


@samples("_native_batch_norm_legit.no_stats")
def batch_norm_without_statistics(make):
    for x in normalized(make):
        yield call(x, make(4, dtype=x.dtype), make(4, dtype=x.dtype), True, 0.1, 1e-5)


@samples("native_batch_norm_backward")
def batch_norm_backward(make):
    for x in normalized(make):
        for training in (True, False):
            weight, bias, mean, var = statistics(make, x, x.dtype)
            out, save_mean, save_invstd = torch.ops.aten.native_batch_norm(
                x, weight, bias, mean, var, training, 0.1, 1e-5
            )
            for grad in (out, out.contiguous()):
                outside = x.is_cuda and (not x.is_contiguous() or x.shape[-1] == 1)
                yield call(
                    grad, x, weight, mean, var, save_mean, save_invstd, training, 1e-5, [True] * 3, outside=outside
                )
            outside = x.is_cuda
            yield call(
                out, x, weight, mean, var, save_mean, save_invstd, training, 1e-5, [True, False, False], outside=outside
            )
            yield call(
                out, x, None, mean, var, save_mean, save_invstd, training, 1e-5, [True, True, True], outside=outside
            )


@samples("cudnn_batch_norm")
def cudnn_batch_norm(make):
    for x in images(make):
        yield call(x, *statistics(make, x, F32), True, 0.1, 1e-5)


@samples("cudnn_batch_norm_backward")
def cudnn_batch_norm_backward(make):
    for x in images(make):
        weight, bias, mean, var = statistics(make, x, F32)
        if x.is_cuda:
            out, *saved, reserve = torch.ops.aten.cudnn_batch_norm(x, weight, bias, mean, var, True, 0.1, 1e-5)
            yield call(x, out, weight, mean, var, *saved, 1e-5, reserve)


@samples("_fused_rms_norm")
def rms_norm(make):
    for x in (make(2, 3, 4), make(2, 3, 4, dtype=BF16), make(3, 2, 4).transpose(0, 1)):
        yield call(x, [4], make(4, dtype=x.dtype), 1e-6, outside=not x.is_cuda)
        yield call(x, [4], None, None, outside=not x.is_cuda)


@samples("_fused_rms_norm_backward")
def rms_norm_backward(make):
    x, weight = make(2, 3, 4), make(4)
    if x.is_cuda:
        _, rstd = torch.ops.aten._fused_rms_norm(x, [4], weight, 1e-6)
        yield call(x, x, [4], rstd, weight, [True, True])


@samples("_weight_norm_interface")
def weight_norm(make):
    for dtype in (F32, F64, BF16):
        yield call(make(3, 4, 5, dtype=dtype), make(3, 1, 1, dtype=dtype), 0)
        yield call(make(3, 4, dtype=dtype), make(1, 4, dtype=dtype), 1)
    yield call(make(4, 3).t(), make(3, 1), 0)


@samples("_weight_norm_interface_backward")
def weight_norm_backward(make):
    v, g = make(3, 4, 5), make(3, 1, 1)
    w, norms = torch.ops.aten._weight_norm_interface(v, g, 0)
    yield call(w, v, g, norms, 0)


@samples("nll_loss_forward")
def nll_loss(make):
    for reduction in (0, 1, 2):
        yield call(make(3, 5), make.index(5, 3), None, reduction, -100)
        yield call(make(5, 3).t(), make.index(5, 3), make(5), reduction, 1)
        yield call(make(5), make.index(5), None, reduction, -100)
        yield call(make(3, 5, dtype=BF16), make.index(5, 3), None, reduction, -100)
    yield call(make(3, 5), make.index(5, 4), None, 1, -100)
    yield call(make(3, 5), make(3), None, 1, -100)
    yield call(make(3, 5, dtype=I64), make.index(5, 3), None, 1, -100)


@samples("nll_loss_backward")
def nll_loss_backward(make):
    for x in (make(3, 5), make(5, 3).t()):
        yield call(make(), x, make.index(5, 3), None, 1, -100, make())
        yield call(make(3), x, make.index(5, 3), None, 0, -100, make())


@samples("nll_loss2d_forward")
def nll_loss_2d(make):
    for x in images(make):
        for reduction in (0, 1, 2):
            yield call(x, make.index(4, 2, 7, 8), None, reduction, -100)


@samples("nll_loss2d_backward")
def nll_loss_2d_backward(make):
    for x in images(make):
        yield call(make(), x, make.index(4, 2, 7, 8), None, 1, -100, make())
        yield call(make(2, 7, 8), x, make.index(4, 2, 7, 8), None, 0, -100, make())


PAIRS = "mse_loss smooth_l1_loss huber_loss soft_margin_loss"


def targets(make):
    for tensor in layouts(make):
        yield tensor, make(*tensor.shape)
        yield tensor, tensor
    yield make(3, 4), make(4)
    yield make(3, 4), make(3)
    yield make(3, 4), make(3, 4, dtype=F64)


@samples(PAIRS)
def pairwise(make):
    for x, target in targets(make):
        for reduction in (0, 1, 2):
            yield call(x, target, reduction, outside=x.dtype != target.dtype)


@samples("mse_loss_backward soft_margin_loss_backward")
def pairwise_backward(make):
    for x, target in targets(make):
        yield call(make(*x.shape), x, target, 0, outside=x.dtype != target.dtype)
        yield call(make(), x, target, 1, outside=x.dtype != target.dtype)


@samples("smooth_l1_loss_backward huber_loss_backward")
def pairwise_backward_with_width(make):
    for x, target in targets(make):
        yield call(make(*x.shape), x, target, 0, 1.0, outside=x.dtype != target.dtype)
        yield call(make(), x, target, 1, 1.0, outside=x.dtype != target.dtype)


@samples("binary_cross_entropy")
def binary_cross_entropy(make):
    for tensor in layouts(make):
        for reduction in (0, 1):
            yield call(tensor, make(*tensor.shape), None, reduction)
    yield call(make(3, 4), make(4), outside=True)


@samples("binary_cross_entropy_backward")
def binary_cross_entropy_backward(make):
    for tensor in layouts(make):
        yield call(make(*tensor.shape), tensor, make(*tensor.shape), None, 0)


@samples("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(make):
    for tensor in layouts(make):
        for reduction in (0, 1):
            yield call(tensor, make(*tensor.shape), None, None, reduction)
            yield call(tensor, make(*tensor.shape), make(*tensor.shape), None, reduction, outside=True)
    yield call(make(3, 4), make(4))
    yield call(make(3, 4, dtype=F16), make(3, 4, dtype=F16))
    yield call(make(3, dtype=U8), make(3, dtype=U8))
