"""Graph breaks: each is named, and the code around it is compiled and equal to eager."""

import re

import numpy
import pytest
import torch
from judging import check

import graphlift


def branch(x):
    y = x * 2
    if y.sum() > 0:
        return y + 1
    return y - 1


def loop(x):
    n = 0
    while x.abs().sum() < 20:
        x = x * 2
        n += 1
    return x, n


def item(x):
    k = int(x[0].item())
    return x * k


def inside_loop(x):
    total = x
    for k in range(3):
        total = total * 2
        total = total + total.max().item() * k
    return total


def inside_with(x):
    with torch.no_grad():
        y = x * 2
        n = y.sum().item()
        z = y + n
    return z, x * n


def inside_try(x):
    try:
        y = x * 2
        if y.sum().item() > -1e9:
            raise ValueError("found")
    except ValueError as error:
        return y, str(error)
    finally:
        x = x + 1
    return x


def through_numpy(x):
    y = x.detach() * 2
    z = torch.from_numpy(numpy.cumsum(y.numpy()))
    return z + x


def deep(x):
    def middle(y):
        return helper_with_item(y * 3) + 1

    return middle(x * 2) * 2


def helper_with_item(y):
    return y * y.sum().item()


def asserting(x):
    assert x.sum() > -1e9
    return x * 2


BREAKS = {
    branch: "a branch depends on a tensor's value",
    loop: "a branch depends on a tensor's value",
    item: "needs the tensor's data",
    inside_loop: "needs the tensor's data",
    inside_with: "needs the tensor's data",
    inside_try: "needs the tensor's data",
    through_numpy: "needs the tensor's data",
    deep: "needs the tensor's data",
    asserting: "a branch depends on a tensor's value",
}


@pytest.mark.parametrize("program", BREAKS, ids=lambda f: f.__name__)
def test_the_break_is_named_and_eager_is_met(program):
    counts = check(program, lambda: (torch.tensor([1.0, 2.0], requires_grad=True),))
    assert any(BREAKS[program] in reason for reason in counts["graph_break"]), counts["graph_break"]


def test_printing_a_tensor(capsys):
    def f(x):
        y = x * 2
        print("y is", y)
        return y + 1

    compiled = graphlift.compile(f)
    torch.testing.assert_close(compiled(torch.ones(1)), torch.tensor([3.0]))
    assert capsys.readouterr().out == "y is tensor([2.])\n"


def test_printing_text_is_kept_in_order(capsys):
    def f(x):
        print("before", 1)
        return x * 2

    compiled = graphlift.compile(f)
    for _ in range(2):
        compiled(torch.ones(1))
    assert capsys.readouterr().out == "before 1\n" * 2


def test_files_are_read_anew(tmp_path):
    path = tmp_path / "number"

    def f(x):
        y = x * 2
        with open(path) as file:
            k = int(file.read())
        return y + k

    compiled = graphlift.compile(f)
    for k in (3, 5):
        path.write_text(str(k))
        assert compiled(torch.ones(1)).item() == 2 + k
    assert graphlift.graph_count() >= 2


def test_fullgraph_names_reason_place_and_hint():
    with pytest.raises(graphlift.GraphBreakError, match="a branch depends on a tensor's value") as caught:
        graphlift.compile(branch, fullgraph=True)(torch.ones(2))
    assert re.search(r"test_graph_breaks\.py\", line \d+, in branch", str(caught.value)) and "torch.where" in str(
        caught.value
    )


def test_fullgraph_without_a_break():
    assert graphlift.compile(lambda x: x * 2, fullgraph=True)(torch.ones(1)).item() == 2


def test_disabled_functions_run_in_eager():
    seen = []

    @graphlift.disable
    def plain(x):
        seen.append(graphlift.is_compiling())
        return x + 1

    compiled = graphlift.compile(lambda x: plain(x * 2) * 3)
    assert [compiled(torch.ones(1)).item() for _ in range(2)] == [9, 9] and seen == [False, False]
    assert any("not to be compiled" in reason for reason in graphlift.counters()["graph_break"])


def test_the_limit_ends_with_one_warning():
    compiled = graphlift.compile(lambda x, t: x * t)
    with pytest.warns(graphlift.GraphliftWarning, match="in eager from now on") as caught:
        for k in range(12):
            assert compiled(torch.ones(1), k + 0.5).item() == k + 0.5
    assert len(caught) == 1 and graphlift.graph_count() == 8


def test_exceptions_keep_type_message_and_line():
    class Trouble(Exception):
        pass

    def f(x, bad):
        y = x * 2
        if bad:
            raise Trouble("number", 7)
        return y

    compiled = graphlift.compile(f)
    compiled(torch.ones(1), False)
    with pytest.raises(Trouble) as caught:
        compiled(torch.ones(1), True)
    assert caught.value.args == ("number", 7)
    assert caught.traceback[-1].lineno == f.__code__.co_firstlineno + 2
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied|size mismatch"):
        graphlift.compile(lambda a, b: a @ b)(torch.ones(2, 3), torch.ones(2, 3))


def test_a_break_where_the_user_asks_for_it():
    def f(x):
        y = x * 2
        graphlift.graph_break("look here")
        return y + 1

    counts = check(f, lambda: (torch.ones(2),), graphs=2, breaks=1)
    assert counts["graph_break"] == {"graph_break() was called: look here": 1}


def test_is_compiling_is_true_in_a_region():
    compiled = graphlift.compile(lambda x: x * 2 if graphlift.is_compiling() else x)
    assert compiled(torch.ones(1)).item() == 2 and not graphlift.is_compiling()
    assert graphlift.counters()["graph_breaks"] == 0
