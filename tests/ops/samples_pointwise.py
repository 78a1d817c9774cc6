"""Samples of pointwise operators."""

from making import (
    BF16,
    BOOL,
    C64,
    F16,
    F32,
    F64,
    FLOAT_DTYPES,
    I32,
    I64,
    NUMBER_DTYPES,
    REAL_DTYPES,
    U8,
    layouts,
    pairs,
)
from rules import call
from samples import samples

FLOAT_UNARY = """exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sigmoid sin cos tan asin acos atan sinh cosh
    tanh asinh acosh atanh sinc"""
REAL_UNARY = "erf erfc erfinv lgamma digamma i0 logit deg2rad rad2deg"
SPECIAL = "special_entr special_erfcx special_i0e special_i1 special_i1e special_ndtri special_log_ndtr"
KEEPING = """neg ceil floor round trunc frac sign sgn nan_to_num bitwise_not logical_not abs relu gelu silu mish
    hardswish hardsigmoid hardtanh elu celu leaky_relu"""
ONE_WAY = "angle isnan isinf isposinf isneginf signbit softplus softshrink hardshrink log_sigmoid_forward"


def in_place(names):
    return " ".join(name.replace(".", "_.") if "." in name else name + "_" for name in names.split())


BOTH_UNARY = FLOAT_UNARY + " " + REAL_UNARY + " " + KEEPING


@samples(BOTH_UNARY, SPECIAL, ONE_WAY, in_place(BOTH_UNARY), "zero zero_")
def unary(make):
    for dtype in NUMBER_DTYPES:
        yield call(make(2, 3, dtype=dtype))
        yield call(make(dtype=dtype))
    for dtype in (F32, I64):
        for tensor in layouts(make, dtype):
            yield call(tensor)


@samples("polygamma")
def order_first(make):
    for tensor in layouts(make):
        yield call(1, tensor)
    yield call(1, make(3, dtype=I64))


@samples("round.decimals round_.decimals")
def decimals(make):
    for tensor in layouts(make):
        yield call(tensor, decimals=2)


@samples("threshold threshold_")
def threshold(make):
    for dtype in REAL_DTYPES:
        for tensor in layouts(make, dtype):
            yield call(tensor, 0, 1)


@samples("pow.Tensor_Scalar pow_.Scalar")
def power(make):
    for dtype in NUMBER_DTYPES:
        for exponent in (2, 2.5, -1, 0, 1, 0.5):
            yield call(make(2, 3, dtype=dtype), exponent)
            yield call(make(dtype=dtype), exponent)
    for tensor in layouts(make):
        yield call(tensor, 3)


@samples("pow.Scalar")
def power_of_number(make):
    for dtype in NUMBER_DTYPES:
        yield call(2, make(2, 3, dtype=dtype))
        yield call(2.5, make(2, 3, dtype=dtype))
    for tensor in layouts(make):
        yield call(2.0, tensor)
        yield call(1, tensor)


@samples("clamp clamp_")
def clamp(make):
    for dtype in NUMBER_DTYPES:
        for low, high in ((0, 1), (0.2, None), (None, 0.7), (None, None), (0, 0.5)):
            yield call(make(2, 3, dtype=dtype), low, high)
            yield call(make(dtype=dtype), low, high)
    for tensor in layouts(make):
        yield call(tensor, 0.1, 0.9)


@samples("clamp_min clamp_max clamp_min_ clamp_max_")
def clamp_one(make):
    for dtype in NUMBER_DTYPES:
        for bound in (1, 0.5):
            yield call(make(2, 3, dtype=dtype), bound)
    for tensor in layouts(make):
        yield call(tensor, 0.5)
        yield call(tensor, 1)


@samples("fill.Scalar fill_.Scalar")
def fill(make):
    for tensor in layouts(make):
        yield call(tensor, 1)


@samples("fill.Tensor fill_.Tensor")
def fill_tensor(make):
    for tensor in layouts(make):
        yield call(tensor, make())
        yield call(tensor, 2.0)
    yield call(make(2), make(1))


COMMON = "add.Tensor sub.Tensor mul.Tensor"
FLOATING = "div.Tensor atan2 xlogy.Tensor copysign.Tensor"
REAL = "remainder.Tensor fmod.Tensor hypot nextafter heaviside gcd lcm"
BITS = (
    """bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor bitwise_left_shift.Tensor bitwise_right_shift.Tensor"""
)
TRUTH = "eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor logical_and logical_or logical_xor"
BOUNDS = "clamp_min.Tensor clamp_max.Tensor"
BOTH_BINARY = " ".join((COMMON, FLOATING, REAL, BITS, TRUTH, BOUNDS))
PLAIN_BINARY = "maximum minimum fmax fmin floor_divide logaddexp logaddexp2 rsub.Tensor pow.Tensor_Tensor complex polar"


@samples(BOTH_BINARY, in_place(BOTH_BINARY), PLAIN_BINARY, "pow_.Tensor floor_divide_.Tensor")
def binary(make):
    for first in NUMBER_DTYPES:
        for second in NUMBER_DTYPES:
            yield call(make(2, 3, dtype=first), make(2, 3, dtype=second))
            yield call(make(2, 3, dtype=first), make(dtype=second))
            yield call(make(dtype=first), make(dtype=second))
    for left, right in pairs(make):
        yield call(left, right)
    for left, right in pairs(make, I64, I64):
        yield call(left, right)
    for left, right in pairs(make, F32, F64):
        yield call(left, right)


# A number in a tensor's place.
@samples(
    "add.Tensor sub.Tensor mul.Tensor div.Tensor eq.Tensor lt.Tensor ge.Tensor add_.Tensor mul_.Tensor div_.Tensor"
)
def binary_with_number(make):
    for dtype in NUMBER_DTYPES:
        for number in (2, 2.5, True, 1 + 2j):
            yield call(make(2, 3, dtype=dtype), number)
            yield call(make(dtype=dtype), number)
    for tensor in layouts(make):
        yield call(tensor, 2)
        yield call(tensor, 0.5)


SCALAR = """add.Scalar sub.Scalar mul.Scalar div.Scalar floor_divide.Scalar remainder.Scalar fmod.Scalar copysign.Scalar
    xlogy.Scalar_Other bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar bitwise_left_shift.Tensor_Scalar
    bitwise_right_shift.Tensor_Scalar eq.Scalar ne.Scalar lt.Scalar le.Scalar gt.Scalar ge.Scalar"""


@samples(SCALAR, in_place(SCALAR), "rsub.Scalar")
def with_scalar(make):
    for dtype in NUMBER_DTYPES:
        for number in (2, 2.5, True):
            yield call(make(2, 3, dtype=dtype), number)
            yield call(make(dtype=dtype), number)
    for tensor in layouts(make):
        yield call(tensor, 2)
    for tensor in layouts(make, I64):
        yield call(tensor, 2)


@samples(
    "remainder.Scalar_Tensor xlogy.Scalar_Self bitwise_and.Scalar_Tensor bitwise_or.Scalar_Tensor "
    "bitwise_xor.Scalar_Tensor"
)
def scalar_first(make):
    for dtype in NUMBER_DTYPES:
        yield call(2, make(2, 3, dtype=dtype))
        yield call(2.5, make(2, 3, dtype=dtype))
    for dtype in (F32, I64):
        for tensor in layouts(make, dtype):
            yield call(3, tensor)


@samples("add.Tensor sub.Tensor add_.Tensor sub_.Tensor rsub.Tensor")
def with_alpha(make):
    for dtype in (F32, I64, BOOL):
        for alpha in (2, 0.5, True):
            yield call(make(2, 3, dtype=dtype), make(2, 3, dtype=dtype), alpha=alpha)


@samples("div.Tensor_mode div_.Tensor_mode div.Scalar_mode div_.Scalar_mode")
def rounded_division(make):
    for mode in (None, "floor", "trunc"):
        for dtype in NUMBER_DTYPES:
            yield call(make(2, 3, dtype=dtype), 2, rounding_mode=mode)
            yield call(make(2, 3, dtype=dtype), 2.5, rounding_mode=mode)


@samples("div.Tensor_mode")
def rounded_division_of_tensors(make):
    for mode in (None, "floor"):
        for left, right in pairs(make, I64, F32):
            yield call(left, right, rounding_mode=mode)


TERNARY = "addcmul addcdiv clamp.Tensor"


@samples(TERNARY, in_place(TERNARY))
def ternary(make):
    for first in NUMBER_DTYPES:
        for second in (F32, I64, F16):
            yield call(make(2, 3, dtype=first), make(2, 3, dtype=second), make(2, 3, dtype=second))
            yield call(make(2, 3, dtype=first), make(2, 3, dtype=first), make(dtype=second))
    for left, right in pairs(make):
        yield call(left, right, right)
        yield call(left, right, left)
        yield call(right, left, make())


@samples("lerp.Tensor lerp_.Tensor")
def lerp_by_tensor(make):
    for dtype in NUMBER_DTYPES:
        yield call(make(2, 3, dtype=dtype), make(2, 3, dtype=dtype), make(2, 3, dtype=dtype))
        yield call(make(2, 3, dtype=dtype), make(2, 3, dtype=dtype), make(dtype=F32), outside=dtype != F32)
    for left, right in pairs(make):
        yield call(left, right, right)
        yield call(right, left, make())


@samples("conj_physical conj_physical_")
def conjugate(make):
    for tensor in layouts(make, C64):
        yield call(tensor)
    yield call(make(3), outside=True)


@samples("clamp.Tensor clamp_.Tensor")
def clamp_with_one_bound(make):
    for left, right in pairs(make):
        yield call(left, right, None)
        yield call(left, None, right)
        yield call(left, None, None)


@samples("lerp.Scalar lerp_.Scalar")
def lerp(make):
    for left, right in pairs(make):
        yield call(left, right, 0.5)
    for dtype in NUMBER_DTYPES:
        yield call(make(2, 3, dtype=dtype), make(2, 3, dtype=F32), 0.25)
        yield call(make(2, 3, dtype=dtype), make(2, 3, dtype=dtype), 0.25)


@samples("where.self")
def where(make):
    for first in NUMBER_DTYPES:
        for second in (F32, I64, BF16):
            yield call(make(2, 3, dtype=BOOL), make(2, 3, dtype=first), make(dtype=second))
            yield call(make(2, 3, dtype=BOOL), make(2, 3, dtype=first), make(3, dtype=second))
    for left, right in pairs(make):
        condition = left > 0.5
        yield call(condition, left, right)
        yield call(condition, right, left)
        yield call(condition, right, 0.0)
    for left, right in pairs(make, F32, F16):
        yield call(left > 0.5, left, right)
    yield call(make(2, 3, dtype=U8), make(2, 3), make(2, 3))
    yield call(make(2, 3, dtype=I32), make(2, 3), make(2, 3))


@samples("masked_fill.Scalar masked_fill_.Scalar")
def masked_fill(make):
    for left, right in pairs(make):
        yield call(left, right > 0.5, 1.0)
    for dtype in NUMBER_DTYPES:
        yield call(make(2, 3, dtype=dtype), make(3, dtype=BOOL), 2)
        yield call(make(2, 3, dtype=dtype), make(3, dtype=BOOL), 2.5)
    yield call(make(2), make(2), 1)


@samples("masked_fill.Tensor masked_fill_.Tensor")
def masked_fill_tensor(make):
    for left, right in pairs(make):
        yield call(left, right > 0.5, make())
    yield call(make(2), make(2, dtype=BOOL), make(1))


BACKWARD_PAIRS = """sigmoid_backward tanh_backward gelu_backward silu_backward mish_backward hardsigmoid_backward
    hardswish_backward logit_backward"""


def same_shape_pairs(make, dtype=F32):
    for left, right in pairs(make, dtype, dtype):
        if left.shape == right.shape:
            yield left, right
    yield make(2, 3, 4, 5, dtype=dtype), make.last(2, 3, 4, 5, dtype=dtype)
    yield make(2, 1, 4, dtype=dtype).expand(2, 3, 4), make(2, 3, 4, dtype=dtype)
    yield make(dtype=dtype).expand(2, 3), make(3, 2, dtype=dtype).t()
    yield make(dtype=dtype).expand(2, 3, 4, 5), make.last(2, 3, 4, 5, dtype=dtype)


@samples(BACKWARD_PAIRS)
def backward(make):
    for dtype in FLOAT_DTYPES:
        for grad, other in same_shape_pairs(make, dtype):
            yield call(grad, other)


@samples("threshold_backward softshrink_backward hardshrink_backward")
def backward_with_number(make):
    for grad, other in same_shape_pairs(make):
        yield call(grad, other, 0.5)


@samples("hardtanh_backward softplus_backward")
def backward_with_two_numbers(make):
    for grad, other in same_shape_pairs(make):
        yield call(grad, other, 0.5, 1.0)


@samples("leaky_relu_backward")
def leaky_relu_backward(make):
    for grad, other in same_shape_pairs(make):
        yield call(grad, other, 0.1, False)


@samples("elu_backward")
def elu_backward(make):
    for grad, other in same_shape_pairs(make):
        yield call(grad, 1.0, 1.0, 1.0, False, other)


@samples("log_sigmoid_backward")
def log_sigmoid_backward(make):
    for grad, other in same_shape_pairs(make):
        yield call(grad, other, make(*other.shape))


@samples("_prelu_kernel")
def prelu(make):
    for tensor in layouts(make):
        yield call(tensor, make(*(1 for _ in tensor.shape)))
    yield call(make.last(2, 3, 4, 5), make(3, 1, 1).expand(1, 3, 1, 1))
    yield call(make(2, 3), make(2, 3, dtype=F64))


@samples("_prelu_kernel_backward")
def prelu_backward(make):
    for grad, other in same_shape_pairs(make):
        yield call(grad, other, make(*(1 for _ in other.shape)))
    yield call(make.last(2, 3, 4, 5), make.last(2, 3, 4, 5), make(1, 3, 1, 1))


@samples("angle abs sgn")
def complex_to_real(make):
    for tensor in layouts(make, C64):
        yield call(tensor)
