"""disable, breaks, marks, counters, and the flag behind torch.compiler.is_compiling()."""

import pytest
import torch

import graphlift


def f(x):
    """Doc."""
    return x + 1


def test_disable():
    plain = graphlift.disable(f)
    assert plain is not f and plain.__wrapped__ is f and plain.__name__ == "f" and plain.__doc__ == "Doc."
    assert plain._graphlift_disable is True and not hasattr(f, "_graphlift_disable")
    assert plain(torch.ones(1)).item() == 2
    assert graphlift.compile(plain) is plain

    @graphlift.disable(reason="talks to a server")
    def g(x):
        return x

    assert g._graphlift_disable_reason == "talks to a server"

    class Holder:
        @graphlift.disable
        def method(self):
            return self

        @graphlift.disable
        @staticmethod
        def static():
            return 1

    h = Holder()
    assert h.method() is h and h.static() == 1
    assert graphlift.disable(h.method)() is h
    assert graphlift.compile(h.method).__func__ is Holder.method
    with pytest.raises(TypeError):
        graphlift.disable(Holder)


def test_torch_disable_marks_are_seen():
    def marked(x):
        return x

    marked._torchdynamo_disable = True
    assert graphlift.compile(marked) is marked


def test_an_object_that_answers_every_attribute_is_not_marked():
    class Everything:
        def __getattr__(self, name):
            return self

        def __call__(self, x):
            return x

    assert graphlift.compile(Everything())(3) == 3


def test_outside_of_a_capture():
    graphlift.graph_break("here")
    assert graphlift.is_compiling() is False and torch.compiler.is_compiling() is False


def test_counts():
    graphlift.reset()
    assert graphlift.graph_count() == 0
    fn = graphlift.compile(f)
    fn(torch.ones(1))
    assert graphlift.graph_count() == 1
    counted = graphlift.counters()
    assert counted["graphs"] == 1 and not counted["graph_break"]
    graphlift.reset()
    assert graphlift.graph_count() == 0


def test_marks():
    x = torch.ones(2, 3, 4)
    graphlift.mark_dynamic(x, 0)
    graphlift.mark_dynamic(x, [-1])
    graphlift.maybe_mark_dynamic(x, 1)
    graphlift.mark_static(x)
    assert x._dynamo_dynamic_indices == {0, 2} and x._dynamo_weak_dynamic_indices == {1}
    assert x._dynamo_static_indices == {0, 1, 2}
    with pytest.raises(IndexError):
        graphlift.mark_dynamic(x, 3)
    with pytest.raises(TypeError):
        graphlift.mark_dynamic([1], 0)
