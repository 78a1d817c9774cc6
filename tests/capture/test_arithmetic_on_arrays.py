"""numpy's arrays inside of a compiled function: computed by the graph, and real arrays at its end."""

import operator
import warnings

import numpy as np
import pytest
import torch

import graphlift

KINDS = [np.float32, np.float64, np.int64, np.int32, np.bool_]


def array(kind, shape=(3, 4), start=-5):
    return (np.arange(start, start + np.prod(shape)).reshape(shape) * 0.75).astype(kind)


def equal(got, want):
    assert type(got) is type(want), (type(got), type(want))
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            equal(g, w)
    elif isinstance(want, np.ndarray):
        assert got.dtype is want.dtype and got.shape == want.shape, (got.dtype, want.dtype, got.shape, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-6 if want.dtype == np.float32 else 1e-12, atol=1e-6)
    elif isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want)
    else:
        assert got == want


def check(program, *arguments, breaks=0, calls=2):
    graphlift.reset()
    compiled = graphlift.compile(program)
    with np.errstate(all="ignore"):
        for _ in range(calls):
            equal(compiled(*arguments), program(*arguments))
    counts = graphlift.counters()
    assert counts["graphs"] >= 1 and counts["internal_errors"] == 0, counts
    if breaks is not None:
        assert (counts["graph_breaks"] > 0) == (breaks > 0), counts["graph_break"]


BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.ge, operator.eq]
OTHERS = [3, 2.5, True, np.float32(1.5), np.float64(0.1), np.int32(7)]


def is_allowed(op, *operands):
    try:
        with np.errstate(all="ignore"):
            return op(*operands).dtype in map(np.dtype, KINDS)
    except TypeError:
        return False


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
@pytest.mark.parametrize("left", KINDS, ids=lambda kind: kind.__name__)
def test_operators(op, left):
    def program(x, a, others):
        return x * 2, [op(a, b) for b in others], [op(b, a) for b in others]

    a = array(left)
    others = [
        b for b in [array(kind, (4,), 1) for kind in KINDS] + OTHERS if is_allowed(op, a, b) and is_allowed(op, b, a)
    ]
    if others:
        check(program, torch.ones(2), a, others)


@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=lambda kind: kind.__name__)
def test_division_and_powers_of_floats(kind):
    def program(x, a, b):
        return x * 2, a // b, a % b, abs(a) ** b, a // 0.75, a % -0.75, a**2, -a, a @ b.T, 2.0**a

    check(program, torch.ones(2), array(kind), array(kind, start=1))


@pytest.mark.parametrize("kind", [np.int32, np.int64], ids=lambda kind: kind.__name__)
def test_division_and_powers_of_ints(kind):
    def program(x, a, b):
        return x * 2, a // 3, a % 3, a // -2, a % -2, a**2, -a, ~a, a & b, a | 3, a ^ b, abs(a), a @ b.T

    check(program, torch.ones(2), array(kind), array(kind, start=1))


def test_of_bools():
    def program(x, a):
        p, q = a > 0, a < 2
        return x * 2, p + q, p * q, ~p, p & q, p | q, p ^ q, p.sum(axis=0), p.mean(axis=1), np.maximum(p, q)

    check(program, torch.ones(2), array(np.float32))


def functions(x, a, b):
    positive = np.abs(a) + 1
    return (
        x * 2,
        np.exp(a * 0.1),
        np.log(positive),
        np.sqrt(positive),
        np.sin(a),
        np.cos(a),
        np.tanh(a),
        np.maximum(a, b),
        np.minimum(a, 1),
        np.where(a > 0, a, b),
        np.where(a > b, 1.0, a),
        np.concatenate([a, b]),
        np.concatenate((a, b), axis=1),
        np.stack([a, b, a], axis=1),
        np.dot(a, b.T),
        np.matmul(a, b.T),
        np.reshape(a, (4, -1)),
        np.transpose(a),
        np.sum(a, axis=0),
        np.mean(a, 1),
        np.max(a, axis=-1, keepdims=True),
        np.min(a, axis=(0, 1), keepdims=True),
        np.add(a, b),
        np.less(a, b),
    )


def methods(x, a, b):
    return (
        x * 2,
        a.sum(0),
        b.mean(axis=1, keepdims=True),
        a.max(axis=1),
        a.min(axis=0),
        a.reshape(2, -1),
        a.reshape((6, 2)),
        a.T,
        a.transpose(1, 0),
        a.astype(np.float64),
        a.astype("float32"),
        (a > 0).astype(int),
        b.copy(),
        a.dot(b.T),
    )


def views(x, a, b):
    c = a * 2
    return x * 2, c[0], c[1:], c[:, 1:3], c[-1], c[None, 1], c[..., ::2], a[0], a[1:, 2], (a + b)[0][1:]


def attributes(x, a, b):
    c = a + b
    return x * 2, c.shape, c.ndim, c.size, c.dtype, len(c), c.T.shape, c[0].shape, isinstance(c, np.ndarray), type(c)


PROGRAMS = [functions, methods, views, attributes]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kinds", [(np.float32, np.float32), (np.float64, np.float32), (np.int64, np.float64)], ids=str)
def test_functions_and_methods(program, kinds):
    check(program, torch.ones(2), array(kinds[0]), array(kinds[1], start=-3))


@pytest.mark.parametrize("program", [functions, methods, attributes], ids=lambda f: f.__name__)
def test_functions_of_whole_numbers(program):
    check(program, torch.ones(2), array(np.int32), array(np.int64, start=-3))


def test_from_tensors_and_back():
    def program(x, a):
        y = x * 2
        b = y.numpy() + a
        return torch.from_numpy(b * 0.5).sin(), torch.as_tensor(b) + x, torch.tensor(b[0]), b

    check(program, torch.linspace(-1, 1, 12).reshape(3, 4), array(np.float32))


def test_sizes_vary():
    def program(x, a):
        b = (a - a.mean(axis=0)) / (a.max(axis=0) + 1)
        return x + torch.from_numpy(b), b.shape

    compiled = graphlift.compile(program)
    for rows in (3, 5, 6, 9, 4):
        a, x = array(np.float32, (rows, 4), 1), torch.ones(rows, 4)
        equal(compiled(x, a), program(x, a))
    assert graphlift.counters()["graphs"] <= 2 and graphlift.counters()["graph_breaks"] == 0


def test_memory_is_shared_as_in_eager():
    def program(x, a):
        y = x * 2
        b = y.numpy()
        c, d = b[1:], b * 1
        y.add_(1)
        return y, b, c, d, b.T, a[1:]

    a = array(np.float32)
    for f in (program, graphlift.compile(program), graphlift.compile(program)):
        x = torch.linspace(-1, 1, 12).reshape(3, 4)
        y, b, c, d, turned, part = f(x, a)
        np.testing.assert_allclose(b, x.numpy() * 2 + 1)
        np.testing.assert_allclose(d, x.numpy() * 2)
        y[1, 2] = 7
        assert b[1, 2] == c[0, 2] == turned[2, 1] == 7 and d[1, 2] != 7
        assert np.shares_memory(part, a) and np.shares_memory(b, c) and not np.shares_memory(b, d)
    assert graphlift.counters()["graph_breaks"] == 0


def written_in_place(x, a):
    b = a * 2
    b += 1
    b[0] = 3
    return x * 2, b


def numbers(x, a):
    return x * 2, (a * 2).sum() + 1, (a * 2)[0, 1], a.mean()


def divided_by_zero(x, a):
    return x * 2, (a.astype(np.float64) * 10).astype(np.int64), a.astype(int) // 0


def an_unknown_function(x, a):
    b = a * 2
    return x * 2, np.cumsum(b, axis=0), np.sort(b), b.tolist(), repr(b), b.flatten()


def looked_into(x, a):
    b = a[0] * 2
    return x * 2, [float(v) for v in b], sum(b), 2.5 in b, bool((b > 100).any()), sorted(b), max(b)


def by_indices(x, a):
    b = a * 2
    return x * 2, b[[0, 1]], b[b > 0], b[::-1]


def beside_a_tensor(x, a):
    return x * 2, torch.ones(3, 4) * torch.from_numpy(a * 2), a.flags["C_CONTIGUOUS"], (a * 2).strides, (a * 2).nbytes


def kept_in_an_object(x, a):
    return x * 2, {"k": a * 2, "l": [a + 1, (a - 1,)]}["l"]


@pytest.mark.parametrize(
    "program",
    [written_in_place, numbers, divided_by_zero, an_unknown_function, looked_into, by_indices, beside_a_tensor],
    ids=lambda f: f.__name__,
)
def test_what_is_not_followed_breaks(program):
    check(program, torch.ones(2), array(np.float32), breaks=1, calls=3)


def test_arrays_in_containers():
    check(kept_in_an_object, torch.ones(2), array(np.float32))


def test_errors_are_numpys():
    def program(x, a, b):
        y = x * 2
        try:
            return y, a + b
        except ValueError as error:
            return y, str(error)

    check(program, torch.ones(2), array(np.float32), array(np.float32, (5,)), breaks=None)


def test_dtypes_are_guarded():
    def program(x, a):
        return x * 2, a * 2.5, a.sum(axis=0)

    compiled = graphlift.compile(program)
    for kind in (*KINDS[:4], *KINDS[:4]):
        equal(compiled(torch.ones(2), array(kind)), program(torch.ones(2), array(kind)))
    assert graphlift.counters()["graphs"] == 4 and graphlift.counters()["hits"] >= 4


def test_gradients_and_other_devices_break():
    def program(w):
        y = w * 2
        return y, y.detach().numpy() * 2, y.detach()

    w = torch.ones(3, requires_grad=True)
    equal(graphlift.compile(program)(w)[1], program(w)[1])

    def refused(w):
        y = w * 2
        return y.numpy() * 2

    with pytest.raises(RuntimeError, match="requires grad"):
        graphlift.compile(refused)(w)


def test_errors_that_numpy_is_told_to_raise_later():
    """How numpy treats floating-point errors is looked at in each call, and costs no other region."""

    def program(x, a):
        return x + torch.from_numpy(1 / a)

    graphlift.reset()
    compiled = graphlift.compile(program)
    x, a = torch.ones(3), np.array([1, 0, 2], np.float32)
    for mode in ("ignore", "warn", "ignore", "ignore"):
        with np.errstate(all="ignore"):
            want = program(x, a)
        with np.errstate(all=mode), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            equal(compiled(x, a), want)
    counts = graphlift.counters()
    assert counts["graphs"] == 1 and counts["hits"] >= 3 and counts["graph_breaks"] == 0, counts
    called = []
    for setting in ({"all": "raise"}, {"all": "ignore", "divide": "raise"}):
        for function in (program, compiled):
            with np.errstate(**setting), pytest.raises(FloatingPointError, match="divide by zero"):
                function(x, a)
    for function in (program, compiled):
        with np.errstate(all="call", call=lambda *what: called.append(what)):
            equal(function(x, a), want)
    assert len(called) == 2 and called[0] == called[1]
    assert graphlift.counters()["internal_errors"] == 0
    with np.errstate(all="ignore"):
        hits = graphlift.counters()["hits"]
        equal(compiled(x, a), want)
        assert graphlift.counters()["hits"] > hits
