"""Python errors that only the run of a graph meets: raised, or handled, where the program would."""

import gc
import sys
import traceback
import weakref

import numpy
import pytest
import torch

import graphlift


def handles(x, index):
    y = x * 2
    try:
        y = y + x[index]
    except IndexError:
        y = y - 1
    return y


def raises(x, index):
    y = x * 2
    y = y + x[index]
    return y


def from_a_nested_scope():
    scale = 3

    def inner(x, index):
        y = x * scale
        return y + x[index]

    return inner


GOOD, BAD = torch.tensor([0, 1]), torch.tensor([0, 7])


@pytest.mark.parametrize("first", [GOOD, BAD], ids=["good first", "bad first"])
def test_an_error_is_handled_inside(first):
    compiled = graphlift.compile(handles, fullgraph=True)
    x = torch.arange(2.0)
    for index in (first, GOOD, BAD, BAD, GOOD):
        assert torch.equal(compiled(x, index), handles(x, index))
    assert graphlift.graph_count() >= 1


@pytest.mark.parametrize("function", [raises, from_a_nested_scope()], ids=["plain", "closure"])
def test_an_error_has_its_own_line(function):
    compiled = graphlift.compile(function, fullgraph=True)
    x = torch.arange(2.0)
    assert torch.equal(compiled(x, GOOD), function(x, GOOD))
    for _ in range(3):
        with pytest.raises(IndexError) as eager:
            function(x, BAD)
        with pytest.raises(IndexError) as got:
            compiled(x, BAD)
        assert str(got.value) == str(eager.value)
        assert traceback.extract_tb(got.tb)[-1].lineno == traceback.extract_tb(eager.tb)[-1].lineno
        expected = {"x", "index", "y"} | ({"scale"} if function.__closure__ else set())
        assert set(got.traceback[-1].frame.f_locals) == expected


def test_locals_of_a_closures_frame_can_be_read_after_a_break_is_refused():
    scale = 3

    def breaks(x):
        y = x * scale
        return y + y.sum().item()

    with pytest.raises(graphlift.GraphBreakError) as caught:
        graphlift.compile(breaks, fullgraph=True)(torch.ones(2))
    names = [set(entry.frame.f_locals) for entry in caught.traceback if entry.name == "breaks"]
    assert names == [{"x", "scale"}]


def test_a_refused_break_is_not_handled_by_the_program():
    def swallows(x):
        try:
            return x * x.sum().item()
        except Exception:
            return x

    with pytest.raises(graphlift.GraphBreakError):
        graphlift.compile(swallows, fullgraph=True)(torch.ones(2))


def test_frames_show_free_variables_that_no_one_reads_any_more():
    def program(x, look):
        y = x * 2

        def seen():
            return look(sys._getframe(1))

        value = seen()
        raise_now(value)
        return y

    def raise_now(value):
        raise KeyError(value)

    compiled = graphlift.compile(program)
    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            compiled(torch.ones(1), lambda frame: sorted(frame.f_locals))
        assert {"raise_now", "y"} <= set(caught.value.args[0])
        names = [set(entry.frame.f_locals) for entry in caught.traceback if entry.frame.code.name == "program"]
        assert len(names) == 1 and {"raise_now", "y"} <= names[0]


def test_members_in_c_are_read_for_real():
    def program(x, dtype):
        y = x * 2
        return y + (1 if dtype.kind == "f" else 2)

    compiled = graphlift.compile(program)
    for name in ("float32", "int32", "float32"):
        assert compiled(torch.zeros(1), numpy.dtype(name)).item() == (1 if name == "float32" else 2)


def broken_in_a_handler(x):
    y = x * 2
    try:
        raise KeyError(1)
    except KeyError:
        graphlift.graph_break()
        inside = sys.exc_info()[0]
        y = y + 1
    return y, inside, sys.exc_info()[0]


def raised_again(x):
    y = x * 2
    try:
        try:
            raise KeyError(1)
        except KeyError:
            graphlift.graph_break()
            y = y + 1
            raise
    except KeyError as error:
        return y * 2, error.args, sys.exc_info()[0]


def raised_for_real(x):
    try:
        [][1]
    except IndexError:
        graphlift.graph_break()
        y = x + 1
    return y, sys.exc_info()[0], None


@pytest.mark.parametrize("program", [broken_in_a_handler, raised_again, raised_for_real], ids=lambda f: f.__name__)
def test_the_handled_exception_is_eagers(program):
    compiled = graphlift.compile(program)
    for k in range(3):
        got, want = compiled(torch.ones(1) * k), program(torch.ones(1) * k)
        assert got[0].item() == want[0].item() and got[1:] == want[1:]
        assert sys.exc_info() == (None, None, None)
    assert graphlift.graph_count() >= 1


def test_an_exception_and_its_frame_do_not_keep_each_other():
    class Held:
        pass

    def program(x, held):
        alive = weakref.ref(held)
        try:
            [][1]
        except IndexError as error:
            graphlift.graph_break()
            y = x + len(error.args)
        return y, alive

    compiled = graphlift.compile(program)
    gc.disable()
    try:
        for _ in range(3):
            assert compiled(torch.ones(1), Held())[1]() is None
    finally:
        gc.enable()


OVERLAPPING = {
    "transposed": lambda x: x.add_(x.t()),
    "strides of its own": lambda x: x.mul_(x.as_strided((3, 3), (1, 3))),
    "a part": lambda x: x[:2].add_(x[1:]),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_a_write_to_memory_that_is_read_in_another_order_is_refused_as_in_eager(name):
    def program(x):
        y = x * 2
        OVERLAPPING[name](y)
        return y + 1

    compiled = graphlift.compile(program)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            program(torch.ones(3, 3))
        with pytest.raises(RuntimeError, match="unsupported operation"):
            compiled(torch.ones(3, 3))
    assert graphlift.graph_count() >= 1
