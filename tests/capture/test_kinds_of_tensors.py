"""Tensors that are not captured, or not as such: sparse, nested, quantized, subclasses, and modes that see each call. The
code around them is compiled and the result is eager's."""

import pytest
import torch
from judging import same
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import graphlift


class Plain(torch.Tensor):
    pass


class Counting(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [a.inner if isinstance(a, Wrapper) else a for a in args]
        result = func(*args, **(kwargs or {}))
        return Wrapper(result * 1) if isinstance(result, torch.Tensor) else result


class CosineForSine(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return (torch.cos if func is torch.sin else func)(*args, **(kwargs or {}))


class DispatchedCosine(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        func = torch.ops.aten.cos.default if func is torch.ops.aten.sin.default else func
        return func(*args, **(kwargs or {}))


def sparse(x):
    s = torch.eye(3).to_sparse()
    y = x * 2
    z = torch.sparse.mm(s, y.T)
    return z + 1, s.to_dense() * 2


def a_sparse_argument(x, s):
    y = x * 2 + 1
    return (s @ y.T) * 3


def sparse_gradients(x):
    weight = torch.ones(4, 3, requires_grad=True)
    y = torch.nn.functional.embedding(torch.tensor([1, 1, 2]), weight, sparse=True)
    (y * x[0]).sum().backward()
    return weight.grad.to_dense() * 2, weight.grad.is_sparse


def nested(x):
    y = x * 2
    n = torch.nested.nested_tensor([y, y[:1]])
    return torch.nested.to_padded_tensor(n * 2, 0.0) + 1


def a_nested_argument(x, n):
    y = x * 2
    padded = torch.nested.to_padded_tensor(n * 2, 0.0)
    return padded + 1, y


def quantized(x):
    q = torch.quantize_per_tensor(x * 2, 0.1, 0, torch.qint8)
    return q.dequantize() + 1


def a_subclass(x, s):
    y = s * 2
    z = x + 1
    return (y + 1).as_subclass(torch.Tensor), type(y).__name__, z * 3


def a_subclass_that_counts(x, s):
    y = s * 2
    z = x + 1
    return (y + 1).as_subclass(torch.Tensor), type(y).__name__, z * 3


def made_inside(x):
    y = (x * 2).as_subclass(Plain) + 1
    return type(y).__name__, y.as_subclass(torch.Tensor) * 2


def a_wrapper(x):
    y = Wrapper(x * 2) + 1
    return y.inner * 2, type(y).__name__


def a_function_mode(x):
    y = x * 2
    with CosineForSine():
        y = torch.sin(y)
    return y * 2 + torch.sin(x)


def a_dispatch_mode(x):
    with DispatchedCosine():
        y = torch.sin(x)
    return y * 2 + torch.sin(x)


def on_meta(x):
    m = torch.ones(2, 3, device="meta") * 2
    return x * m.shape[0], m.device.type


def matrix(k):
    return torch.linspace(-1, 1, 6).reshape(2, 3) + k


def jagged(k, layout):
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3) * k], layout=layout)


# Programs and their arguments; at least so many graphs, unless the whole runs in eager.
PROGRAMS = {
    "sparse": (sparse, lambda k: (matrix(k),), 1),
    "sparse argument": (a_sparse_argument, lambda k: (matrix(k), torch.eye(3).to_sparse()), 1),
    "CSR argument": (a_sparse_argument, lambda k: (matrix(k), torch.eye(3).to_sparse_csr()), 1),
    "sparse gradients": (sparse_gradients, lambda k: (matrix(k),), 0),
    "nested": (nested, lambda k: (matrix(k),), 1),
    "nested argument": (a_nested_argument, lambda k: (matrix(k), jagged(k, torch.strided)), 1),
    "jagged argument": (a_nested_argument, lambda k: (matrix(k), jagged(k, torch.jagged)), 1),
    "quantized": (quantized, lambda k: (matrix(k),), 1),
    "subclass": (a_subclass, lambda k: (matrix(k), matrix(k).as_subclass(Plain)), 1),
    "subclass that counts": (a_subclass_that_counts, lambda k: (matrix(k), matrix(k).as_subclass(Counting)), 1),
    "subclass made inside": (made_inside, lambda k: (matrix(k),), 1),
    "wrapper": (a_wrapper, lambda k: (matrix(k),), 1),
    "function mode": (a_function_mode, lambda k: (matrix(k),), 1),
    "dispatch mode": (a_dispatch_mode, lambda k: (matrix(k),), 0),
    "meta": (on_meta, lambda k: (matrix(k),), 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_right_result(name):
    program, make, graphs = PROGRAMS[name]
    compiled = graphlift.compile(program)
    for k in range(3):
        Counting.calls.clear()
        want, calls = program(*make(k)), list(Counting.calls)
        Counting.calls.clear()
        same(compiled(*make(k)), want)
        assert Counting.calls == calls
    counts = graphlift.counters()
    assert counts["graphs"] >= graphs and counts["given_up"] == 0 and counts["internal_errors"] == 0, counts


@pytest.mark.parametrize("name", ["sparse", "subclass", "function mode"])
@pytest.mark.filterwarnings("ignore")
def test_gradients_flow_around_them(name):
    program, make, _ = PROGRAMS[name]
    results = []
    for f in (program, graphlift.compile(program)):
        for k in (1, 2):
            x, *others = make(k)
            x.requires_grad_()
            result = f(x, *others)
            flows = [t for t in (result if isinstance(result, tuple) else (result,)) if isinstance(t, torch.Tensor)]
            sum(t.sum() for t in flows if t.requires_grad).backward()
            results.append(x.grad)
    same(results[2:], results[:2])


def test_what_a_view_from_outside_is_a_view_of():
    def program(x, base):
        y = x * 2
        return y, x._base is base, x._base is None

    compiled, base = graphlift.compile(program), torch.ones(4)
    for x in (base.view(4), base, base[:2], torch.ones(4), base.view(2, 2)):
        same(compiled(x, base), program(x, base))
    assert graphlift.counters()["graphs"] > 0


def test_whether_a_tensor_from_outside_is_a_view():
    def program(x):
        return x * 2, x._is_view(), x[1:]._is_view(), (x * 2)._is_view()

    compiled, base = graphlift.compile(program), torch.ones(4)
    for x in (base.view(4), base, base[:2], torch.ones(4)):
        same(compiled(x), program(x))
    counts = graphlift.counters()
    assert counts["graphs"] > 0 and counts["graph_breaks"] > 0


def test_whether_a_tensor_from_outside_retains_its_gradient():
    def program(x):
        return x * 2, x.retains_grad

    compiled, leaf = graphlift.compile(program), torch.ones(4, requires_grad=True)
    for retains in (False, True, False):
        x = leaf * 2
        if retains:
            x.retain_grad()
        same(compiled(x), program(x))
    assert graphlift.counters()["graphs"] > 0
