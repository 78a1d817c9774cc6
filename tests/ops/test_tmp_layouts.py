"""Random layouts, broadcasts, dtypes and views: what the written samples do not think of."""

import torch
from checking import problem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import BF16, BOOL, F32, F64, I32, I64, Make
from rules import call

LIMITS = settings(max_examples=1200, deadline=None, suppress_health_check=list(HealthCheck))
DTYPES = st.sampled_from([F32, F32, F32, F64, BF16, I64, I32, BOOL])


@st.composite
def strided(draw, shape, dtype=F32):
    """A tensor of this shape: some order of dims in memory, with gaps, repetition and odd strides for dims of 1."""
    make = Make(seed=draw(st.integers(0, 3)))
    order = draw(st.permutations(range(len(shape))))
    strides, next_stride = [0] * len(shape), draw(st.sampled_from([1, 1, 1, 2]))
    for dim in order:
        kind = draw(st.sampled_from(["plain", "plain", "plain", "gap", "repeat"]))
        if shape[dim] == 1:
            strides[dim] = draw(st.sampled_from([next_stride, 1, 5, 0]))
            continue
        if kind == "repeat":
            continue
        strides[dim] = next_stride
        next_stride *= max(shape[dim], 1) + (1 if kind == "gap" else 0)
    return make.strided(tuple(shape), tuple(strides), draw(st.integers(0, 2)), dtype)


SHAPES = st.lists(st.sampled_from([1, 2, 3, 4, 0]), max_size=5)
FULL_SHAPES = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4)


@st.composite
def operands(draw, count, dtypes=DTYPES):
    """Tensors that broadcast with each other."""
    shape = draw(SHAPES)
    result = []
    for _ in range(count):
        mine = [1 if draw(st.integers(0, 5)) == 0 else size for size in shape]
        mine = mine[draw(st.integers(0, 1)) * draw(st.integers(0, len(mine))) :]
        result.append(draw(strided(mine, draw(dtypes))))
    return result


def holds(name, *args, **kwargs):
    error, _ = problem("aten::" + name, call(*args, **kwargs))
    assert error is None, error


@LIMITS
@given(operands(2))
def test_two_operands(pair):
    holds("add.Tensor", *pair)
    holds("maximum.default", *pair)
    holds("div.Tensor", *pair)
    holds("lt.Tensor", *pair)


@LIMITS
@given(operands(1), st.sampled_from([2, 0.5, True]))
def test_one_operand_and_a_number(single, number):
    holds("mul.Tensor", *single, number)
    holds("exp.default", *single)
    holds("clone.default", *single)
    holds("sum.default", *single)


@LIMITS
@given(operands(3, st.sampled_from([F32, F64, BF16])))
def test_three_operands(triple):
    holds("addcmul.default", *triple)
    holds("where.self", triple[0] > 0.5, *triple[1:])


@LIMITS
@given(operands(2, st.just(F32)))
def test_in_place(pair):
    holds("add_.Tensor", *pair)
    holds("copy_.default", *pair)
    holds("mul_.Tensor", *pair)


@st.composite
def views(draw):
    tensor = draw(FULL_SHAPES.flatmap(strided))
    factors = []
    for size in tensor.shape:
        factors += [2, 2] if size == 4 and draw(st.booleans()) else [size]
    shape, at = [], 0
    while at < len(factors):
        take = draw(st.integers(1, 2))
        shape.append(int(torch.tensor(factors[at : at + take]).prod()))
        at += take
    if draw(st.booleans()):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    if draw(st.booleans()):
        shape[draw(st.integers(0, len(shape) - 1))] = -1
    return tensor, shape


@LIMITS
@given(views())
def test_views_with_other_sizes(pair):
    holds("view.default", *pair)
    holds("_unsafe_view.default", *pair)


@LIMITS
@given(FULL_SHAPES.flatmap(strided), st.integers(-6, 6), st.integers(-6, 6), st.integers(1, 3), st.integers(-4, 3))
def test_slices(tensor, start, end, step, dim):
    if not -tensor.dim() <= dim < tensor.dim():
        return
    holds("slice.Tensor", tensor, dim, start, end, step)
    holds("select.int", tensor, dim, start)
    holds("unsqueeze.default", tensor, dim)
    holds("split.Tensor", tensor, step, dim)
    holds("slice_scatter.default", tensor, tensor.narrow(dim, 0, 1), dim, 0, 1, step)


@st.composite
def indexings(draw):
    tensor = draw(FULL_SHAPES.flatmap(strided))
    make = Make(seed=draw(st.integers(0, 3)))
    shape = draw(st.lists(st.sampled_from([1, 2, 3]), max_size=2))
    indices = []
    for size in tensor.shape[: draw(st.integers(1, tensor.dim()))]:
        if draw(st.booleans()):
            index = make.index(size, *(1 if draw(st.integers(0, 3)) == 0 else part for part in shape))
            indices.append(index.t() if index.dim() == 2 and draw(st.booleans()) and shape == shape[::-1] else index)
        else:
            indices.append(None)
    return tensor, indices


@LIMITS
@given(indexings())
def test_indexing(pair):
    if any(index is not None for index in pair[1]):
        holds("index.Tensor", *pair)
        holds("index_put.default", *pair, torch.tensor(1.0))


@LIMITS
@given(
    st.lists(st.sampled_from([1, 2, 3]), min_size=4, max_size=5).flatmap(lambda s: st.tuples(strided(s), strided(s)))
)
def test_formats(pair):
    holds("cat.default", list(pair), 1)
    holds("stack.default", list(pair), 1)
    holds("empty_like.default", pair[0])
    holds("constant_pad_nd.default", pair[0], [1, 0, 0, 1])
    holds("roll.default", pair[0], [1], [2])
    if pair[0].dim() == 4:
        holds("avg_pool2d.default", pair[0], [1, 1])
        holds("upsample_nearest2d.default", pair[0], [4, 3])
