"""Samples of indexing, scattering, embedding and joining."""

from making import BOOL, F16, F32, F64, I32, I64, layouts
from rules import call
from samples import samples


def index_lists(make):
    """(self, indices) pairs."""
    three = make(4, 5, 6)
    for self in (three, make.permuted(4, 5, 6, order=(2, 0, 1)), make.gaps(4, 5, 6), make(1, 5, 6).expand(4, 5, 6)):
        yield self, [make.index(4, 3)]
        yield self, [None, make.index(5, 3)]
        yield self, [None, None, make.index(6, 2, 3)]
        yield self, [make.index(4, 3), make.index(5, 3)]
        yield self, [make.index(4, 3), None, make.index(6, 3)]
        yield self, [make.index(4, 2, 1), make.index(5, 3)]
        yield self, [make.index(4), None, None]
        yield self, [make.index(4, 1), make.index(5, 1), None]
        yield self, [make.index(4, 3, 2).t(), make.index(5, 2, 3)]
        yield self, [None, make.index(5, 1), make.index(6, 4)]
        yield self, [make.index(4, 3, dtype=I32)]
    for self in (make.last(2, 3, 4, 5), make(2, 3, 4, 5)):
        yield self, [None, None, make.index(4, 7, 1), make.index(5, 8)]
        yield self, [None, None, make.index(4, 8)]
        yield self, [make.index(2, 3)]
    yield make(3), [make.index(3, 2)]
    yield make(3), [make.index(3)]
    yield make(0, 3), [None, make.index(3, 2)]
    yield make(3, 0), [make.index(3, 2)]
    yield make(3, 4), [make.index(3, 0)]
    yield make(3, 4), [make.index(3, 2), make.index(4, 3)]
    yield make(3, 4), [make.index(3, 2), make.index(4, 2), make.index(4, 2)]
    yield make.strided((2, 1, 3), (3, 7, 1)), [make.index(2, 2)]


@samples("index.Tensor _unsafe_index.Tensor")
def index(make):
    for self, indices in index_lists(make):
        yield call(self, indices)


@samples("index.Tensor")
def index_by_mask(make):
    yield call(make(3, 4), [make(3, dtype=BOOL)], outside=True)


@samples("index_put index_put_ _unsafe_index_put")
def index_put(make):
    for self, indices in index_lists(make):
        if 0 in self.stride():
            continue
        try:
            values = make(*self[tuple(slice(None) if i is None else i.long() for i in indices)].shape)
        except (IndexError, RuntimeError):
            values = make(1)
        yield call(self, indices, values)
        yield call(self, indices, make(), True)
    yield call(make(3, 4), [make.index(3, 2)], make(4))
    yield call(make(3, 4), [make.index(3, 2)], make(2, 1), True)
    yield call(make(3, 4), [make.index(3, 2)], make(5))
    yield call(make(3, 4), [make.index(3, 2)], make(4, dtype=F64))


@samples("index_put index_put_")
def index_put_by_mask(make):
    for self in (make(3, 4), make(4, 3).t()):
        yield call(self, [make(3, 4, dtype=BOOL)], make())
        yield call(self, [make(3, dtype=BOOL)], make())
        yield call(self, [make(2, dtype=BOOL)], make())
        yield call(self, [make(3, dtype=BOOL), make.index(4, 1)], make(), outside=True)


@samples("index_select")
def index_select(make):
    for tensor in layouts(make):
        if tensor.numel():
            yield call(tensor, 0, make.index(max(1, tensor.shape[0] if tensor.dim() else 1), 1))
            yield call(tensor, -1, make.index(max(1, tensor.shape[-1] if tensor.dim() else 1), 4))
    yield call(make(3, 4), 0, make.index(3))
    yield call(make(3, 4), 0, make.index(3, 2, dtype=I32))
    yield call(make(3, 4), 0, make.index(3, 2, 2))
    yield call(make(0, 3), 1, make.index(3, 2))


@samples("gather")
def gather(make):
    yield call(make(3, 4), 1, make.index(4, 3, 2))
    yield call(make(4, 3).t(), 0, make.index(3, 5, 4))
    yield call(make(3, 4), 0, make.index(3, 2, 2).t())
    yield call(make(3, 4), 1, make.index(4, 4, 2))
    yield call(make(), 0, make.index(1))
    yield call(make(3, 4), 1, make.index(4, 3))
    yield call(make(3, 4), 0, make.index(4, 0))
    yield call(make(3, 4), 1, make.index(4, 3, 2, dtype=I32), outside=True)


@samples("take")
def take(make):
    yield call(make(3, 4), make.index(12, 5))
    yield call(make(3, 4).t(), make.index(12, 2, 3).t())


@samples("searchsorted.Tensor")
def searchsorted(make):
    yield call(make(5), make(2, 3))
    yield call(make(5), make(3, 2).t(), out_int32=True)
    yield call(make(2, 5), make(2, 3))


@samples("searchsorted.Scalar")
def searchsorted_number(make):
    yield call(make(5), 0.5)


@samples("bucketize.Tensor")
def bucketize(make):
    yield call(make(2, 3), make(5))
    yield call(make(3, 2).t(), make(5), out_int32=True)


SCATTERED = "scatter.src scatter_add scatter_.src scatter_add_"


def scattered(make):
    for self in (make(3, 4), make(4, 3).t(), make.gaps(3, 4)):
        yield self, 1, make.index(4, 3, 2), make(3, 2)
        yield self, 0, make.index(3, 2, 4), make(3, 4)
        yield self, -1, make.index(4, 2, 2).t(), make(2, 3)
        yield self, 1, make.index(4, 3, 5), make(3, 5)
        yield self, 1, make.index(4, 4, 2), make(4, 2)
        yield self, 1, make.index(4, 3, 2), make(3, 1)
        yield self, 1, make.index(4, 3, 2), make(3, 2, dtype=F64)
        yield self, 1, make.index(4, 0), make(3, 2)
    yield make(), 0, make.index(1), make()
    yield make(3), 0, make.index(3, 2), make(2)


@samples(SCATTERED)
def scatter(make):
    for args in scattered(make):
        yield call(*args)


@samples("scatter.value scatter_.value")
def scatter_value(make):
    for self, dim, index, _ in scattered(make):
        yield call(self, dim, index, 1.5)


@samples("scatter.reduce scatter_.reduce")
def scatter_reduced(make):
    for args in scattered(make):
        yield call(*args, reduce="add")


@samples("scatter.value_reduce scatter_.value_reduce")
def scatter_value_reduced(make):
    for self, dim, index, _ in scattered(make):
        yield call(self, dim, index, 2, reduce="multiply")


@samples("scatter_reduce.two scatter_reduce_.two")
def scatter_reduce(make):
    for args in scattered(make):
        yield call(*args, "amax")
        yield call(*args, "mean", include_self=False)


def sliced(make):
    for self in (make(3, 4), make(4, 3).t(), make.gaps(3, 4)):
        yield self, 1, make.index(4, 2), make(3, 2)
        yield self, 0, make.index(3, 5), make(5, 4)
        yield self, 0, make.index(3, 5), make(4, 4)
        yield self, 0, make.index(3, 2), make(2, 4, dtype=F64)
        yield self, 0, make.index(3, 2, 1), make(2, 4)
    yield make(3), 0, make.index(3, 2), make(2)


@samples("index_add index_add_ index_copy index_copy_")
def index_add(make):
    for args in sliced(make):
        yield call(*args)


@samples("index_reduce index_reduce_")
def index_reduce(make):
    for args in sliced(make):
        yield call(*args, "amax")


@samples("index_fill.int_Scalar index_fill_.int_Scalar")
def index_fill(make):
    for self, dim, index, _ in sliced(make):
        yield call(self, dim, index, 1.0)


@samples("index_fill.int_Tensor index_fill_.int_Tensor")
def index_fill_tensor(make):
    for self, dim, index, _ in sliced(make):
        yield call(self, dim, index, make())


@samples("masked_scatter masked_scatter_")
def masked_scatter(make):
    for self in (make(3, 4), make(4, 3).t()):
        yield call(self, make(3, 4, dtype=BOOL), make(12))
        yield call(self, make(4, dtype=BOOL), make(12))
        yield call(self, make(4), make(12))


@samples("put put_")
def put(make):
    for self in (make(3, 4), make(4, 3).t()):
        yield call(self, make.index(12, 5), make(5))


@samples("embedding")
def embedding(make):
    yield call(make(7, 4), make.index(7, 2, 3))
    yield call(make(7, 4), make.index(7, 3), 1)
    yield call(make(7, 4), make.index(7))
    yield call(make(4, 7).t(), make.index(7, 3, 2).t())
    yield call(make(7, 4, dtype=F16), make.index(7, 2, dtype=I32))
    yield call(make(7), make.index(7, 2))
    yield call(make(7, 4), make(2))


@samples("embedding_dense_backward")
def embedding_backward(make):
    yield call(make(2, 3, 4), make.index(7, 2, 3), 7, -1, False)
    yield call(make(3, 4), make.index(7, 3), 7, 0, False)


@samples("cat")
def cat(make):
    last, plain = make.last(2, 3, 4, 5), make(2, 3, 4, 5)
    for tensors in (
        [make(2, 3), make(2, 3)],
        [make(2, 3), make(4, 3)],
        [make(2, 3), make(2, 4)],
        [last, last],
        [last, plain],
        [plain, last],
        [make(2, 3)],
        [make(0), make(2, 3)],
        [make(0), make(0)],
        [make(3, 2).t(), make(3, 2).t()],
        [make(2, 3), make(2, 3, dtype=F64)],
        [make(2, dtype=I64), make(3)],
        [make(2, 3), make(3)],
        [make(), make()],
        [last, make(0)],
        [make.last(2, 3, 2, 4, 5), make.last(2, 3, 2, 4, 5)],
        [make(3, dtype=BOOL), make(2, dtype=I32)],
    ):
        for dim in (0, 1, -1):
            yield call(tensors, dim)


@samples("stack")
def stack(make):
    for tensors in (
        [make(2, 3), make(2, 3)],
        [make(), make()],
        [make(2, 3), make(3, 2).t()],
        [make.last(2, 3, 4, 5)] * 2,
        [make.permuted(2, 3, 4, order=(1, 2, 0))] * 3,
        [make(2), make(3)],
        [make(2), make(2, dtype=F64)],
        [make(0, 3)] * 2,
        [make(2, dtype=I64), make(2)],
    ):
        for dim in (0, 1, -1):
            yield call(tensors, dim)


@samples("repeat")
def repeat(make):
    for tensor in layouts(make):
        yield call(tensor, [2] * tensor.dim())
        yield call(tensor, [3, 1] + [2] * tensor.dim())
    yield call(make(2, 3), [2])
    yield call(make(2, 3), [0, 2])
    yield call(make(2, 3), [])


@samples("roll")
def roll(make):
    for tensor in layouts(make):
        yield call(tensor, [1], [0])
        yield call(tensor, [1])
        yield call(tensor, [1, -1], [0, -1])
        yield call(tensor, [1, 2], [0])


@samples("flip")
def flip(make):
    for tensor in layouts(make):
        yield call(tensor, [0])
        yield call(tensor, [0, -1])
        yield call(tensor, [])


@samples("tril triu tril_ triu_")
def triangle(make):
    for tensor in layouts(make):
        yield call(tensor)
        yield call(tensor, 1)


@samples("glu")
def glu(make):
    for tensor in (make(4, 6), make(6, 4).t(), make.last(2, 4, 4, 6), make(4, 5), make(4, dtype=F32)):
        yield call(tensor)
        yield call(tensor, 0)
        yield call(tensor, 1)


@samples("glu_backward")
def glu_backward(make):
    yield call(make(4, 3), make(4, 6), -1)
    yield call(make(3, 4).t(), make(6, 4).t(), 1)
    yield call(make.last(2, 2, 4, 6), make.last(2, 4, 4, 6), 1)
