"""Makes the tensors of samples. Owns layouts; must not know operators."""

import torch

F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
I64, I32, I16, I8, U8, BOOL = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool
C64, C128 = torch.complex64, torch.complex128


class Make:
    """make(2, 3, dtype=...) gives a tensor of small positive numbers on the device."""

    def __init__(self, device="cpu", seed=0):
        self.device, self.generator = device, torch.Generator().manual_seed(seed)

    def __call__(self, *shape, dtype=F32):
        if dtype is BOOL:
            tensor = torch.rand(shape, generator=self.generator) > 0.5
        elif dtype.is_floating_point or dtype.is_complex:
            tensor = (torch.rand(shape, generator=self.generator) * 0.8 + 0.1).to(dtype)
        else:
            tensor = torch.randint(1, 4, shape, generator=self.generator).to(dtype)
        return tensor.to(self.device)

    def index(self, below, *shape, dtype=I64):
        return torch.randint(0, below, shape, generator=self.generator).to(dtype).to(self.device)

    def last(self, *shape, dtype=F32):
        """Channels last."""
        return self(*shape, dtype=dtype).to(
            memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        )

    def permuted(self, *shape, order, dtype=F32):
        """Of this shape, in memory nested as `order` says, outermost first."""
        inverse = [order.index(i) for i in range(len(order))]
        return self(*(shape[i] for i in order), dtype=dtype).permute(inverse)

    def gaps(self, *shape, dtype=F32):
        """Every second element of something twice as large."""
        return self(*(2 * size for size in shape), dtype=dtype)[tuple(slice(None, None, 2) for _ in shape)]

    def strided(self, shape, strides, offset=0, dtype=F32):
        length = 1 + offset + sum(max(size - 1, 0) * stride for size, stride in zip(shape, strides))
        return self(length, dtype=dtype).as_strided(shape, strides, offset)


def layouts(make, dtype=F32):
    """Tensors of every kind of layout."""
    yield make(2, 3, dtype=dtype)
    yield make(dtype=dtype)
    yield make(0, 3, dtype=dtype)
    yield make(5, dtype=dtype)
    yield make(2, 3, 4, 5, dtype=dtype)
    yield make.last(2, 3, 4, 5, dtype=dtype)
    yield make.last(2, 1, 4, 5, dtype=dtype)
    yield make.last(2, 3, 1, 1, dtype=dtype)
    yield make.last(2, 3, 2, 4, 5, dtype=dtype)
    yield make.permuted(2, 3, 4, order=(1, 2, 0), dtype=dtype)
    yield make(3, 2, dtype=dtype).t()
    yield make.gaps(3, 4, dtype=dtype)
    yield make.gaps(4, 3, dtype=dtype).t()
    yield make(2, 1, 4, dtype=dtype).expand(2, 3, 4)
    yield make.strided((4, 1), (1, 7), dtype=dtype)
    yield make.strided((1, 3, 1), (1, 2, 9), dtype=dtype)
    yield make(6, dtype=dtype)[1::2]
    yield make(3, 0, 4, dtype=dtype).transpose(0, 2)


def pairs(make, first=F32, second=F32):
    """Pairs that broadcast, of every kind of layout."""
    for left, right in zip(layouts(make, first), layouts(make, second)):
        yield left, right
    yield make(2, 3, dtype=first), make(3, dtype=second)
    yield make(2, 1, dtype=first), make(1, 3, dtype=second)
    yield make(2, 3, dtype=first), make(dtype=second)
    yield make(dtype=first), make(2, 3, dtype=second)
    yield make.last(2, 3, 4, 5, dtype=first), make(2, 3, 4, 5, dtype=second)
    yield make(2, 3, 4, 5, dtype=first), make.last(2, 3, 4, 5, dtype=second)
    yield make.last(2, 3, 4, 5, dtype=first), make(3, 1, 1, dtype=second)
    yield make.last(2, 3, 4, 5, dtype=first), make(1, dtype=second)
    yield make(3, 1, 1, dtype=first), make.last(2, 3, 4, 5, dtype=second)
    yield make.last(2, 3, 4, 5, dtype=first), make(4, 5, dtype=second)
    yield make(4, 3, dtype=first).t(), make(3, 4, dtype=second)
    yield make(4, 3, dtype=first).t(), make(4, dtype=second)
    yield make.permuted(2, 3, 4, order=(2, 0, 1), dtype=first), make.permuted(2, 3, 4, order=(1, 2, 0), dtype=second)
    yield make(2, 1, 4, dtype=first).expand(2, 3, 4), make.permuted(2, 3, 4, order=(2, 1, 0), dtype=second)
    yield make(2, 3, 1, dtype=first).expand(2, 3, 4), make(1, 3, 4, dtype=second).expand(2, 3, 4)
    yield make(0, dtype=first), make(1, dtype=second)
    yield make(1, 1, dtype=first), make(1, 1, 1, dtype=second)
    yield make(2, 3, dtype=first), make(4, dtype=second)  # does not broadcast


NUMBER_DTYPES = (F32, F64, F16, BF16, I64, I32, U8, BOOL, C64)
REAL_DTYPES = (F32, F64, F16, BF16, I64, I32, U8, BOOL)
FLOAT_DTYPES = (F32, F64, F16, BF16)
