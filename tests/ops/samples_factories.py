"""Samples of factories and random operators."""

import torch
from making import BOOL, C64, F16, F32, F64, I32, I64, layouts
from rules import call
from samples import samples

CPU = torch.device("cpu")


@samples("empty.memory_format")
def empty(make):
    yield call([2, 3])
    yield call([], dtype=I64, device=CPU)
    for form in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d):
        yield call([2, 3, 4, 5], memory_format=form)
        yield call([2, 3, 2, 4, 5], memory_format=form)
        yield call([0, 3, 4, 5], memory_format=form)
    yield call([2, -1])


@samples("zeros ones rand randn")
def sized(make):
    yield call([2, 3])
    yield call([])
    yield call([0, 2])
    yield call([2], dtype=F64)
    yield call([2], dtype=F16, device=CPU, pin_memory=False)
    yield call([-2])


@samples("rand.generator randn.generator")
def sized_from_generator(make):
    yield call([2, 3], generator=torch.Generator())


@samples("full")
def full(make):
    for value in (1, 1.5, True, 1 + 2j):
        yield call([2, 3], value)
        yield call([2, 3], value, dtype=C64)


@samples("empty_strided")
def empty_strided(make):
    yield call([2, 3], [1, 2])
    yield call([2, 3], [6, 1], dtype=I64)
    yield call([2, 3], [6])
    yield call([2, 3], [-1, 1])


@samples("new_empty new_zeros new_ones")
def new(make):
    yield call(make(2, dtype=I32), [3, 4])
    yield call(make(2, dtype=I32), [], dtype=F64, device=CPU)
    yield call(make.last(2, 3, 4, 5), [2, 3, 4, 5])


@samples("new_full")
def new_full(make):
    yield call(make(2, dtype=I32), [3, 4], 1.5)
    yield call(make(2), [3], 1, dtype=I64)


@samples("new_empty_strided")
def new_empty_strided(make):
    yield call(make(2, dtype=I32), [3, 4], [1, 3])
    yield call(make(2), [3], [2], dtype=I64)


@samples("empty_like zeros_like ones_like rand_like randn_like")
def like(make):
    for tensor in layouts(make):
        yield call(tensor)
        yield call(tensor, dtype=F64)
        yield call(tensor, memory_format=torch.contiguous_format)
        yield call(tensor, memory_format=torch.channels_last)
        yield call(tensor, memory_format=torch.preserve_format, device=CPU)


@samples("full_like")
def full_like(make):
    for tensor in layouts(make):
        yield call(tensor, 2.5)
        yield call(tensor, 1, dtype=I64, memory_format=torch.contiguous_format)


@samples("randint_like")
def randint_like(make):
    for tensor in layouts(make):
        yield call(tensor, 5)
        yield call(tensor, 5, dtype=I64)


@samples("randint_like.low_dtype")
def randint_like_between(make):
    for tensor in layouts(make):
        yield call(tensor, 2, 5)


@samples("arange")
def arange(make):
    for end in (5, 0, 2.5, 7.0, -1, True):
        yield call(end)
        yield call(end, dtype=I64)
        yield call(end, dtype=F32)


@samples("arange.start")
def arange_start(make):
    for start, end in ((1, 5), (2.5, 7), (5, 1), (-3, 3), (4, 4)):
        yield call(start, end)
        yield call(start, end, dtype=F64)


@samples("arange.start_step")
def arange_step(make):
    for start, end, step in (
        (1, 9, 2),
        (0, 7, 3),
        (9, 1, -2),
        (9, 1, -1),
        (0, 1, 0.3),
        (1, 5, -1),
        (0, 5, 0),
        (0, 10, 5),
        (2, 7, 1),
    ):
        yield call(start, end, step)
        yield call(start, end, step, dtype=F32)
        if step != 0.3:  # 0 as an int: a crash before torch 2.12
            yield call(start, end, step, dtype=I64)


@samples("linspace")
def linspace(make):
    yield call(0, 1, 5)
    yield call(0.0, 1.0, 5, dtype=F64)
    yield call(0, 1j, 5)


@samples("eye")
def eye(make):
    yield call(3)
    yield call(3, dtype=I64)


@samples("eye.m")
def eye_m(make):
    yield call(3, 4)
    yield call(3, 0, dtype=BOOL)


for name in ("bartlett", "blackman", "hann", "hamming", "kaiser"):

    @samples(f"{name}_window")
    def window(make):
        for length in (0, 1, 5):
            yield call(length)
        yield call(4, dtype=F64)

    @samples(f"{name}_window.periodic")
    def periodic_window(make):
        yield call(5, False)
        yield call(4, True, dtype=F64)


@samples("hamming_window.periodic_alpha")
def window_with_alpha(make):
    yield call(5, False, 0.5)


@samples("hamming_window.periodic_alpha_beta")
def window_with_alpha_and_beta(make):
    yield call(5, True, 0.5, 0.25)


@samples("kaiser_window.beta")
def window_with_beta(make):
    yield call(5, True, 8.0)


@samples("scalar_tensor")
def scalar_tensor(make):
    for value in (1, 2.5, True):
        yield call(value)
        yield call(value, dtype=I64)


@samples("tril_indices triu_indices")
def triangle(make):
    for rows, columns in ((3, 3), (2, 5), (5, 2), (0, 3)):
        for offset in (0, 1, -1, 9, -9):
            yield call(rows, columns, offset)


@samples("randint")
def randint(make):
    yield call(5, [2, 3])
    yield call(5, [2, 3], dtype=F32)


@samples("randint.generator")
def randint_from_generator(make):
    yield call(5, [2, 3], generator=torch.Generator())


@samples("randint.low")
def randint_low(make):
    yield call(2, 5, [2, 3])


@samples("randint.low_generator")
def randint_low_from_generator(make):
    yield call(2, 5, [2, 3], generator=torch.Generator())


@samples("randperm")
def randperm(make):
    yield call(5)
    yield call(5, dtype=I32)


@samples("randperm.generator")
def randperm_from_generator(make):
    yield call(5, generator=torch.Generator())


@samples("""bernoulli uniform uniform_ normal_ normal_functional exponential exponential_ log_normal log_normal_ cauchy cauchy_
    random random_""")
def filled(make):
    for tensor in layouts(make):
        yield call(tensor)


@samples("bernoulli.p bernoulli_.float geometric geometric_")
def with_probability(make):
    for tensor in layouts(make):
        yield call(tensor, 0.5)


@samples("bernoulli.Tensor bernoulli_.Tensor")
def with_probabilities(make):
    for tensor in layouts(make):
        yield call(tensor, make(*tensor.shape))


@samples("random.from random_.from")
def random_from(make):
    for tensor in layouts(make):
        yield call(tensor, 1, 7)


@samples("random.to random_.to")
def random_to(make):
    for tensor in layouts(make):
        yield call(tensor, 7)


@samples("normal.Tensor_float")
def normal_means(make):
    for tensor in layouts(make):
        yield call(tensor, 1.0)


@samples("normal.float_Tensor")
def normal_spreads(make):
    for tensor in layouts(make):
        yield call(1.0, tensor)


@samples("normal.Tensor_Tensor")
def normal_both(make):
    for tensor in layouts(make):
        yield call(tensor, make(*tensor.shape))
    yield call(make(2, 3), make(3))


@samples("multinomial")
def multinomial(make):
    yield call(make(5), 2)
    yield call(make(3, 5), 2)
    yield call(make(3, 5), 7, True)
    yield call(make(3, 5).t(), 1)


@samples("native_dropout")
def dropout(make):
    for tensor in layouts(make):
        yield call(tensor, 0.5, True)
        yield call(tensor, 0.5, False)
        yield call(tensor, 0.5, None)
    yield call(make(3, dtype=I64), 0.5, True)


@samples("native_dropout_backward")
def dropout_backward(make):
    for tensor in layouts(make):
        yield call(tensor, tensor > 0.5, 2.0)
    yield call(make(3, 2).t(), make(2, 3) > 0.5, 2.0)
