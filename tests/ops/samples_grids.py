"""Samples of pooling, resampling and padding."""

import torch
from making import BF16, F32, I64
from rules import call
from samples import samples


def images(make, dtype=F32):
    yield make(2, 3, 9, 8, dtype=dtype)
    yield make.last(2, 3, 9, 8, dtype=dtype)
    yield make(3, 9, 8, dtype=dtype)
    yield make.gaps(2, 3, 9, 8, dtype=dtype)
    yield make.last(2, 1, 9, 8, dtype=dtype)
    yield make.permuted(3, 9, 8, order=(1, 2, 0), dtype=dtype)


def volumes(make):
    yield make(2, 3, 5, 6, 7)
    yield make.last(2, 3, 5, 6, 7)
    yield make(3, 5, 6, 7)


WINDOWS = (
    ([2, 2], [], [0, 0]),
    ([3, 2], [2, 1], [1, 1]),
    ([3, 3], [2, 2], [0, 1]),
    ([3], [3], [1]),
    ([2, 2], [], [2, 0]),
)


@samples("max_pool2d_with_indices")
def max_pool(make):
    for image in images(make):
        for kernel, stride, padding in WINDOWS:
            for ceil in (False, True):
                yield call(image, kernel, stride, padding, [1, 1], ceil)
        yield call(image, [2, 2], [2, 2], [0, 0], [2, 1])
        yield call(image, [9, 9])
    yield call(make(0, 3, 9, 8), [2, 2])
    yield call(make(2, 0, 9, 8), [2, 2])
    yield call(make(9, 8), [2, 2])


@samples("max_pool2d_with_indices_backward")
def max_pool_backward(make):
    for image in images(make):
        out, indices = torch.ops.aten.max_pool2d_with_indices(image, [2, 2])
        yield call(out, image, [2, 2], [2, 2], [0, 0], [1, 1], False, indices)
        yield call(out.contiguous(), image, [2, 2], [2, 2], [0, 0], [1, 1], False, indices)


@samples("max_pool3d_with_indices")
def max_pool_3d(make):
    for volume in volumes(make):
        yield call(volume, [2, 2, 2])
        yield call(volume, [2, 3, 2], [1, 2, 2], [1, 1, 0], [1, 1, 1], True)


@samples("max_pool3d_with_indices_backward")
def max_pool_3d_backward(make):
    for volume in volumes(make):
        out, indices = torch.ops.aten.max_pool3d_with_indices(volume, [2, 2, 2])
        yield call(out, volume, [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False, indices)


@samples("avg_pool2d")
def average_pool(make):
    for image in images(make):
        for kernel, stride, padding in WINDOWS:
            for ceil in (False, True):
                yield call(image, kernel, stride, padding, ceil)
        yield call(image, [9, 9])
    yield call(make(2, 3, 4, 4, dtype=I64), [2, 2])
    yield call(make(2, 3, 4, 4, dtype=BF16), [2, 2])


@samples("avg_pool2d_backward")
def average_pool_backward(make):
    for image in images(make):
        out = torch.ops.aten.avg_pool2d(image, [2, 2])
        yield call(out, image, [2, 2], [2, 2], [0, 0], False, True, None)
        yield call(out.contiguous(), image, [2, 2], [2, 2], [0, 0], False, True, None)


@samples("avg_pool3d")
def average_pool_3d(make):
    for volume in volumes(make):
        yield call(volume, [2, 2, 2])
        yield call(volume, [2, 3, 2], [1, 2, 2], [1, 1, 0], True)


@samples("avg_pool3d_backward")
def average_pool_3d_backward(make):
    for volume in volumes(make):
        out = torch.ops.aten.avg_pool3d(volume, [2, 2, 2])
        yield call(out, volume, [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, None)


@samples("_adaptive_avg_pool2d adaptive_max_pool2d")
def adaptive_pool(make):
    for image in images(make):
        for size in ([1, 1], [3, 2], [9, 8], [12, 11]):
            yield call(image, size)
    yield call(make(9, 8), [1, 1])


@samples("_adaptive_avg_pool2d_backward")
def adaptive_pool_backward(make):
    for image in images(make):
        for size in ([1, 1], [3, 2]):
            one_channel = image.is_cuda and image.dim() == 4 and image.shape[1] == 1
            yield call(torch.ops.aten._adaptive_avg_pool2d(image, size), image, outside=one_channel)
    yield call(make.last(2, 3, 1, 1), make(2, 3, 9, 8))


@samples("adaptive_max_pool2d_backward")
def adaptive_max_pool_backward(make):
    for image in images(make):
        out, indices = torch.ops.aten.adaptive_max_pool2d(image, [3, 2])
        yield call(out, image, indices)


@samples("_adaptive_avg_pool3d")
def adaptive_pool_3d(make):
    for volume in volumes(make):
        yield call(volume, [1, 2, 3])


@samples("_adaptive_avg_pool3d_backward")
def adaptive_pool_3d_backward(make):
    for volume in volumes(make):
        yield call(torch.ops.aten._adaptive_avg_pool3d(volume, [1, 2, 3]), volume)


@samples("upsample_nearest1d _upsample_nearest_exact1d")
def upsample_1d(make):
    for x in (make(2, 3, 5), make(2, 5, 3).transpose(1, 2)):
        yield call(x, [8])
    yield call(make(3, 5), [8])


@samples("upsample_linear1d")
def upsample_linear(make):
    for x in (make(2, 3, 5), make(2, 5, 3).transpose(1, 2)):
        yield call(x, [8], False)
        yield call(x, [8], True, 1.6)


@samples("upsample_nearest1d_backward _upsample_nearest_exact1d_backward")
def upsample_1d_backward(make):
    yield call(make(2, 3, 8), [8], [2, 3, 5])


@samples("upsample_linear1d_backward")
def upsample_linear_backward(make):
    yield call(make(2, 3, 8), [8], [2, 3, 5], False)


@samples("upsample_nearest2d _upsample_nearest_exact2d")
def upsample_2d(make):
    for image in images(make):
        yield call(image, [18, 16])
        yield call(image, [5, 20], 0.5, 2.5)
        yield call(image, [0, 4])


SMOOTH = "upsample_bilinear2d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa"


@samples(SMOOTH)
def upsample_smooth(make):
    for image in images(make):
        yield call(image, [18, 16], False)
        yield call(image, [5, 20], True)


def output_gradients(make):
    yield make(2, 3, 18, 16)
    yield make.last(2, 3, 18, 16)


@samples("upsample_nearest2d_backward _upsample_nearest_exact2d_backward")
def upsample_2d_backward(make):
    for grad in output_gradients(make):
        yield call(grad, [18, 16], [2, 3, 9, 8])


@samples(" ".join(name + "_backward" for name in SMOOTH.split()))
def upsample_smooth_backward(make):
    for grad in output_gradients(make):
        yield call(grad, [18, 16], [2, 3, 9, 8], False)


@samples("upsample_nearest3d _upsample_nearest_exact3d")
def upsample_3d(make):
    for volume in volumes(make):
        yield call(volume, [7, 8, 9])


@samples("upsample_trilinear3d")
def upsample_trilinear(make):
    for volume in volumes(make):
        yield call(volume, [7, 8, 9], False)


@samples("upsample_nearest3d_backward _upsample_nearest_exact3d_backward")
def upsample_3d_backward(make):
    for grad in (make(2, 3, 7, 8, 9), make.last(2, 3, 7, 8, 9)):
        yield call(grad, [7, 8, 9], [2, 3, 5, 6, 7])


@samples("upsample_trilinear3d_backward")
def upsample_trilinear_backward(make):
    for grad in (make(2, 3, 7, 8, 9), make.last(2, 3, 7, 8, 9)):
        yield call(grad, [7, 8, 9], [2, 3, 5, 6, 7], False)


@samples("grid_sampler_2d")
def grid_sample(make):
    for image in (make(2, 3, 9, 8), make.last(2, 3, 9, 8)):
        yield call(image, make(2, 5, 6, 2), 0, 0, False)
        yield call(image, make(2, 2, 5, 6).permute(0, 2, 3, 1), 1, 0, True)
    yield call(make(2, 3, 9, 8), make(2, 5, 6, 3), 0, 0, False)


@samples("grid_sampler_2d_backward")
def grid_sample_backward(make):
    for image in (make(2, 3, 9, 8), make.last(2, 3, 9, 8)):
        yield call(make(2, 3, 5, 6), image, make(2, 5, 6, 2), 0, 0, False, [True, True])
        yield call(make(2, 3, 5, 6), image, make(2, 2, 5, 6).permute(0, 2, 3, 1), 0, 0, False, [False, True])


@samples("grid_sampler_3d")
def grid_sample_3d(make):
    yield call(make(2, 3, 4, 5, 6), make(2, 2, 3, 4, 3), 0, 0, False)


@samples("grid_sampler_3d_backward")
def grid_sample_3d_backward(make):
    yield call(make(2, 3, 2, 3, 4), make(2, 3, 4, 5, 6), make(2, 2, 3, 4, 3), 0, 0, False, [True, True])


@samples("pixel_shuffle")
def pixel_shuffle(make):
    for image in (make(2, 8, 3, 5), make.last(2, 8, 3, 5), make(8, 3, 5), make(2, 2, 8, 3, 5), make.gaps(2, 8, 3, 5)):
        yield call(image, 2)
    yield call(make(2, 6, 3, 5), 2)


@samples("pixel_unshuffle")
def pixel_unshuffle(make):
    for image in (make(2, 2, 6, 4), make.last(2, 2, 6, 4), make(2, 6, 4)):
        yield call(image, 2)
    yield call(make(2, 2, 5, 4), 2)
    for image in (make(0, 2, 6, 4), make.last(2, 2, 0, 4), make(2, 2, 6, 0)):
        yield call(image, 2)


@samples("im2col")
def im2col(make):
    for image in images(make):
        yield call(image, [2, 3], [1, 1], [0, 1], [1, 2])


@samples("col2im")
def col2im(make):
    yield call(make(2, 12, 12), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1])
    yield call(make(12, 12), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1])


@samples("constant_pad_nd")
def constant_pad(make):
    for image in images(make):
        for pad in ([1, 2], [1, 1, 2, 0], [0, 0], [-1, 0], [-1, 2, 0, -3], [-1, -1, -2, 0], [0, 0, 0, 1], [], [-9, -9]):
            yield call(image, pad)
            yield call(image, pad, 1.5)
    yield call(make(5), [1, 2])
    yield call(make(5), [1, 2, 3, 4])
    yield call(make(5), [1])


@samples("reflection_pad1d replication_pad1d")
def edge_pad_1d(make):
    for x in (make(2, 3, 5), make(3, 5), make(2, 5, 3).transpose(1, 2)):
        for pad in ([1, 2], [0, 0], [-1, 2]):
            yield call(x, pad)
    yield call(make(2, 5), [1, 2])
    yield call(make(5), [1, 2])


@samples("reflection_pad1d")
def reflection_too_wide(make):
    yield call(make(2, 5), [5, 0])


@samples("reflection_pad1d_backward replication_pad1d_backward")
def edge_pad_1d_backward(make):
    yield call(make(2, 3, 8), make(2, 3, 5), [1, 2])
    yield call(make(2, 8, 3).transpose(1, 2), make(2, 5, 3).transpose(1, 2), [1, 2])


@samples("reflection_pad2d replication_pad2d")
def edge_pad_2d(make):
    for image in images(make):
        yield call(image, [1, 2, 0, 1])


@samples("reflection_pad2d_backward replication_pad2d_backward")
def edge_pad_2d_backward(make):
    for image in (make(2, 3, 9, 8), make.last(2, 3, 9, 8), make(3, 9, 8)):
        shape = (*image.shape[:-2], 10, 11)
        yield call(make(*shape), image, [1, 2, 0, 1])
        if len(shape) == 4:
            yield call(make.last(*shape), image, [1, 2, 0, 1])


@samples("reflection_pad3d replication_pad3d")
def edge_pad_3d(make):
    for volume in volumes(make):
        yield call(volume, [1, 2, 0, 1, 1, 1])


@samples("reflection_pad3d_backward replication_pad3d_backward")
def edge_pad_3d_backward(make):
    for volume in volumes(make):
        yield call(make(*volume.shape[:-3], 7, 7, 10), volume, [1, 2, 0, 1, 1, 1])
