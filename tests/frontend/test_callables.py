"""compile on every kind of callable: bound as the original is, dressed as the original is."""

import copy
import functools
import gc
import inspect
import pickle
import weakref

import torch

import graphlift

ONE = torch.ones(1)


@graphlift.compile
def at_top(x, *, weight: float = 0.5, **rest) -> "Tensor":  # noqa: F821
    """Mixes."""
    return x * weight + rest.get("bias", 0)


class Holder:
    k = 3

    def __init__(self):
        self.own = graphlift.compile(self.plain)

    def plain(self, x):
        return x * self.k

    @graphlift.compile
    def method(self, x):
        return x * self.k

    @staticmethod
    @graphlift.compile
    def inner_static(x):
        return x - 1

    @graphlift.compile
    @staticmethod
    def outer_static(x):
        return x - 1

    @classmethod
    @graphlift.compile(dynamic=False)
    def inner_class(cls, x):
        return cls.k + x

    @graphlift.compile()
    @classmethod
    def outer_class(cls, x):
        return cls.k + x


def test_dress():
    def blend(x, *, weight: float = 0.5, **rest) -> "Tensor":  # noqa: F821
        """Mixes."""
        return x * weight + rest.get("bias", 0)

    blend.tag = "v1"
    fn = graphlift.compile(blend)
    for name in (
        "__name__",
        "__qualname__",
        "__module__",
        "__doc__",
        "__defaults__",
        "__kwdefaults__",
        "__code__",
        "tag",
    ):
        assert getattr(fn, name) == getattr(blend, name), name
    assert fn.__annotations__ == blend.__annotations__
    assert inspect.signature(fn) == inspect.signature(blend)
    assert inspect.unwrap(fn) is blend
    assert fn(ONE, bias=2).item() == 2.5
    fn.other = 1
    assert fn.other == 1 and not hasattr(blend, "other")


def test_methods():
    h = Holder()
    assert h.method(ONE).item() == 3 and Holder.method(h, ONE).item() == 3 and h.own(ONE).item() == 3
    assert h.inner_static(ONE).item() == 0 and h.outer_static(ONE).item() == 0
    assert Holder.inner_class(ONE).item() == 4 and h.outer_class(ONE).item() == 4
    h.k = 5
    assert h.method(ONE).item() == 5 and h.own(ONE).item() == 5
    assert list(inspect.signature(h.method).parameters) == ["x"] == list(inspect.signature(h.own).parameters)
    assert h.method.__self__ is h


def test_compile_of_compiled():
    calls = []

    def f(x):
        calls.append(1)
        return x * 3

    twice = graphlift.compile(graphlift.compile(f), dynamic=True)
    assert twice.__wrapped__ is f
    assert twice(ONE).item() == 3 and calls == [1]


def test_partial_and_objects():
    def scale(x, k, bias=0):
        return x * k + bias

    partial = graphlift.compile(functools.partial(scale, k=2, bias=1))
    assert isinstance(partial, functools.partial) and partial(ONE).item() == 3 and partial(ONE, k=5).item() == 6

    class Affine:
        def __init__(self):
            self.k = 2

        def __call__(self, x):
            return x * self.k

    affine = Affine()
    fn = graphlift.compile(affine)
    assert fn(ONE).item() == 2 and isinstance(fn, Affine)
    fn.k = 4
    assert affine.k == 4 and fn(ONE).item() == 4
    again = copy.deepcopy(fn)
    again.k = 7
    assert again(ONE).item() == 7 and affine.k == 4
    assert graphlift.compile(fn)(ONE).item() == 4


def test_c_functions():
    assert graphlift.compile(torch.neg)(ONE).item() == -1
    assert graphlift.compile(torch.nn.functional.relu)(-ONE).item() == 0
    assert graphlift.compile(ONE.add)(2).item() == 3


def test_classes():
    @graphlift.compile
    class Net(torch.nn.Module):
        def forward(self, x):
            return x * 2

    @graphlift.compile
    class Affine:
        def __call__(self, x):
            return x * 3

    assert isinstance(Net, type) and Net()(ONE).item() == 2 and Affine()(ONE).item() == 3


def test_copies_and_pickles_by_name():
    assert copy.copy(at_top) is at_top and copy.deepcopy(at_top) is at_top
    assert pickle.loads(pickle.dumps(at_top)) is at_top
    assert at_top(ONE).item() == 0.5


def test_wrong_call_is_the_functions_own_error():
    try:
        at_top(ONE, 1, 2)
    except TypeError as error:
        assert "positional" in str(error)
    else:
        raise AssertionError("wrong call accepted")


def test_a_compiled_callable_dies_with_its_owner():
    def make():
        captured = torch.ones(3)
        h = Holder()
        fn = graphlift.compile(lambda x: x + captured)
        fn(ONE)
        h.own(ONE)
        h.method(ONE)
        return [weakref.ref(thing) for thing in (captured, h, fn)]

    refs = make()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 3
