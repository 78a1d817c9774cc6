"""Arrays of numpy from outside as far as their shape and kind go, and numpy's numbers as constants."""

import warnings

import numpy as np
import pytest
import torch
from judging import check, regions, same

import graphlift


def shapes(a, x):
    y = x * a.shape[0] + a.ndim
    return y * 2, a.shape, a.size, len(a), a.shape[1:] == (3,)


def kinds(a, x):
    scale = 3 if a.dtype == np.float32 else 5
    return x * scale, str(a.dtype), a.dtype.name, a.dtype.itemsize, a.dtype.type is np.float32, f"{a.dtype}", a.dtype


def turned(a, x):
    return torch.from_numpy(a.T) * 2 + x.T, a.T.shape, len(a.T)


def numbers(a, x):
    y = x * np.float32(2) + np.pi
    return y * float(np.sqrt(4.0)), int(np.prod((2, 3))), np.float64(a.shape[1]) * 2, np.max([1, 2.5])


def a_number_decides(a, x):
    return x + 1 if np.float32(2) < np.prod(a.shape) else x - 1


CAPTURED = [shapes, kinds, turned, numbers, a_number_decides]


def arguments(k):
    return np.arange(6, dtype=np.float32).reshape(2, 3) + k, torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()


@pytest.mark.parametrize("program", CAPTURED, ids=lambda f: f.__name__)
def test_one_graph(program):
    compiled = graphlift.compile(program)
    for k in range(4):
        same(compiled(*arguments(k)), program(*arguments(k)))
    regions(1, 0)


def test_other_sizes_and_kinds():
    def program(a, x):
        return x * a.shape[-1] + a.size, len(a), str(a.dtype)

    compiled = graphlift.compile(program)
    for k in (3, 4, 5, 6, 7):
        same(compiled(np.ones((2, k)), torch.ones(2)), program(np.ones((2, k)), torch.ones(2)))
    assert graphlift.counters()["graphs"] == 2, "sizes that vary are symbols"
    for a in (np.ones((2, 2), dtype=np.int64), np.ones(4, dtype=np.float16), np.ones((2, 3))[::-1], np.ones((1, 0))):
        same(compiled(a, torch.ones(2)), program(a, torch.ones(2)))
    assert graphlift.counters()["graph_breaks"] == 0


def test_a_length_of_none():
    def program(a, x):
        try:
            return x * len(a)
        except TypeError as error:
            return x, str(error)

    compiled = graphlift.compile(program)
    for _ in range(3):
        same(compiled(np.array(2.0), torch.ones(2)), program(np.array(2.0), torch.ones(2)))
    assert graphlift.counters()["graph_breaks"] == 0


@pytest.mark.parametrize("dtype", [">f4", "datetime64[ns]", "U3", [("a", "f4")]])
def test_other_kinds_break(dtype):
    def program(a, x):
        y = x * a.shape[0]
        return y + 1, str(a.dtype), a.dtype == np.float32

    compiled = graphlift.compile(program)
    for _ in range(3):
        same(compiled(np.zeros(3, dtype=dtype), torch.ones(2)), program(np.zeros(3, dtype=dtype), torch.ones(2)))
    assert graphlift.counters()["graph_breaks"] >= 1


def beside_numbers(x, s):
    return x * 2, s + 1, s * s, s < 2, float(s), s.item(), np.sqrt(s), abs(s), int(s), str(s), bool(s), s


def beside_tensors(x, s):
    made = torch.full((2,), s), torch.tensor(s), torch.as_tensor(s)
    return s * x, x - s, s - x, x / (s + 1), x**s, s < x, x.clamp(max=s), made


NUMBERS = [np.float32(2), np.float64(1.5), np.float16(2), np.int64(2), np.int32(-3 + 6), np.uint8(7), np.float64(-0.0)]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{type(n).__name__}({n})")
@pytest.mark.parametrize("program", [beside_numbers, beside_tensors], ids=lambda f: f.__name__)
def test_a_number_as_argument(program, number):
    check(program, lambda: (torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(), number), graphs=1, breaks=0)


def test_numbers_are_guarded_by_type_and_bits():
    def program(x, s):
        return x * s, type(s).__name__

    compiled = graphlift.compile(program)
    seen = [np.float64("nan"), np.float64("nan"), np.float64(0.0), np.float64(-0.0), np.float32(0), 0.0, np.int64(0)]
    for s in seen:
        (got, name), (want, expected) = compiled(torch.ones(2), s), program(torch.ones(2), s)
        assert name == expected and got.dtype == want.dtype
        assert torch.equal(torch.signbit(got), torch.signbit(want)) or s != s
        torch.testing.assert_close(got, want, equal_nan=True)
    assert graphlift.counters()["graphs"] >= 2


def test_a_number_that_varies_is_not_compiled_for_each():
    def program(x, s):
        return x * 2 + s

    compiled = graphlift.compile(program)
    for k in range(12):
        same(compiled(torch.ones(2), np.float32(k)), program(torch.ones(2), np.float32(k)))
    assert graphlift.counters()["graphs"] <= 3 and graphlift.counters()["given_up"] == 0


def test_what_numpy_warns_of_is_warned_of_each_time():
    def program(x, s):
        y = x * 2
        return y + 1, np.float64(1) / s

    compiled = graphlift.compile(program)
    for f in (program, compiled, compiled, compiled):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert f(torch.ones(2), np.float64(0))[1] == np.inf
        assert ["divide by zero" in str(w.message) for w in seen] == [True]
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            f(torch.ones(2), np.float64(0))
    assert graphlift.counters()["graphs"] >= 1


class Looks:
    """What a number of numpy's looks at before it computes."""

    __array_ufunc__ = None

    def __rmul__(self, other):
        return other + 5


def test_objects_that_numpy_would_look_at_break():
    def program(x, o):
        y = x * 2
        return y + np.float64(2) * o

    compiled = graphlift.compile(program)
    for _ in range(3):
        same(compiled(torch.ones(2), Looks()), program(torch.ones(2), Looks()))
    assert graphlift.counters()["graph_breaks"] >= 1


def unknown(a, x):
    return torch.from_numpy(np.cumsum(a, axis=1) + 1) * 3 + x


def elements(a, x):
    return x * 2 + float(a[0, 1]), a.sum(), a.copy()[0, 0], np.sqrt(a)[0, 1]


@pytest.mark.parametrize("program", [unknown, elements], ids=lambda f: f.__name__)
def test_what_reads_arrays_breaks(program):
    compiled = graphlift.compile(program)
    for k in range(4):
        same(compiled(*arguments(k)), program(*arguments(k)))
    assert graphlift.counters()["graph_breaks"] >= 1
