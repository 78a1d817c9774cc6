"""What each log says of a real capture: graphs as code that runs, instructions, guards, recompiles, breaks."""

import dis
import os
import re
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import graphlift


def inner(y):
    return F.gelu(y) + 1


def outer(x, weight):
    y = torch.cat([x, x.flip(0)]) @ weight
    values, places = inner(y).max(dim=-1)
    parts = values.split([1, 3])
    return parts[0] * 2, places, parts[1].to(torch.float64), torch.full((2,), float("inf"), dtype=torch.float16)


def inputs():
    torch.manual_seed(0)
    return torch.randn(2, 3), torch.randn(3, 4)


def code_of(message):
    """The graph's function, and the names of its parameters."""
    text = message[message.index("def forward(") :]
    names = {"torch": torch}
    exec(text, names)
    return names["forward"], text


def test_graph_code_runs_and_equals_eager(logged):
    graphlift.set_logs("graph_code")
    x, weight = inputs()
    graphlift.compile(outer, dynamic=False)(x, weight)
    (message,) = logged("graph_code")
    forward, text = code_of(message)
    got = [value for value in forward(x, weight) if value is not None]
    for want in outer(x, weight):
        assert any(value.dtype == want.dtype and torch.equal(value, want) for value in got), text
    lines = [line.strip() for line in text.splitlines()]
    assert f"# File: {__file__}:{outer.__code__.co_firstlineno + 1} in outer, code: y = torch.cat" in text
    assert f"# File: {__file__}:{inner.__code__.co_firstlineno + 1} in inner, code: return F.gelu(y) + 1" in lines


def test_graph_code_with_symbols_constants_and_numbers(logged):
    def scaled(x):
        return (x + torch.tensor([1.0, 2.0, 3.0])).sum(0) * x.shape[0] * (1 + 2j), torch.where(x > 0, x, 0.5)

    graphlift.set_logs("graph_code")
    x = torch.linspace(-1, 1, 15).reshape(5, 3)
    torch.testing.assert_close(graphlift.compile(scaled, dynamic=True)(x), scaled(x))
    forward, text = code_of(logged("graph_code")[0])
    head = text.splitlines()[0]
    assert re.match(r"def forward\(s\d+, \w+: \"f32\[s\d+, \w+\]\{\w+, 1\} cpu\"(, constant0: .*)?\):", head), head
    constants = [torch.tensor([1.0, 2.0, 3.0])] * head.count("constant0")
    wider = torch.linspace(-1, 1, 21).reshape(7, 3)
    got = forward(7, wider, *constants)
    for want in scaled(wider):
        assert any(value.dtype == want.dtype and torch.equal(value, want) for value in got), text


def test_graph_is_a_table(logged):
    graphlift.set_logs("graph")
    graphlift.compile(outer)(*inputs())
    (message,) = logged("graph")
    assert re.search(r"^%\d+: f32\[4, 4\]\{4, 1\} cpu = aten::mm.default\(%\d+, %\d+\)", message, re.M), message


def test_bytecode_is_what_was_evaluated(logged):
    graphlift.set_logs("bytecode")
    graphlift.compile(outer)(*inputs())
    (message,) = logged("bytecode")
    assert message.startswith(f"bytecode evaluated for the region at {__file__}:{outer.__code__.co_firstlineno}")
    own = {instruction.opname for instruction in dis.get_instructions(outer)}
    lines = [line for line in message.splitlines() if "  # " not in line]  # names of functions have one
    shown = {word for line in lines[1:] for word in re.findall(r"^ +(?:\d+ )? *([A-Z][A-Z_]+)", line)}
    assert shown <= {opname for opname in dis.opmap} and {"LOAD_FAST", "RETURN_VALUE"} & shown
    assert own - shown <= {"RESUME", "CACHE", "PRECALL", "KW_NAMES", "EXTENDED_ARG", "NOP", "NOT_TAKEN"}, own - shown
    assert f"  inner  # {__file__}" in message.splitlines()
    line = outer.__code__.co_firstlineno + 1
    assert re.search(rf"^ +{line}  [A-Z]", message, re.M), message


def test_a_region_behind_a_break_shows_its_own_instructions(logged):
    def broken(x):
        y = x * 2
        n = y.sum().item()
        return y + n

    graphlift.set_logs("bytecode")
    graphlift.compile(broken)(torch.ones(2))
    first, last = logged("bytecode")[0], logged("bytecode")[-1]
    assert "RETURN_VALUE" not in first and "RETURN_VALUE" in last
    assert "LOAD_ATTR" not in last and "item" not in last


def test_aot_graphs(logged):
    graphlift.set_logs("aot_graphs")
    graphlift.compile(nn.Linear(3, 3))(torch.ones(2, 3)).sum().backward()
    graphlift.compile(lambda x: x + 1)(torch.ones(2))
    with_backward, without = logged("aot_graphs")
    assert re.search(r"forward at .*aten::addmm.*backward\n.*aten::", with_backward, re.S), with_backward
    assert "no backward" in without


def test_guards_and_recompiles_in_words(logged):
    graphlift.set_logs("guards", "recompiles")
    compiled = graphlift.compile(lambda x, flag: x * 2 if flag else x, dynamic=False)
    compiled(torch.ones(2), True)
    compiled(torch.ones(2), False)
    compiled(torch.ones(3), True)
    assert len(logged("guards")) == 3 and "x" in logged("guards")[0]
    first, second = logged("recompiles")
    assert re.search(r"Recompiling <lambda> at .*test_log_artifacts.py:\d+\n +because .*flag", first), first
    assert "because" in second and re.search(r"\b[23]\b", second), second


def test_perf_hints_say_why_a_function_runs_in_eager(logged):
    graphlift.set_logs("perf_hints")
    compiled = graphlift.compile(lambda x, t: x * t if t > 0 else x, options={"recompile_limit": 2})
    with pytest.warns(graphlift.GraphliftWarning):
        for number in range(4):
            compiled(torch.ones(1), number + 0.5)
    assert any("in eager from now on" in message for message in logged("perf_hints"))


@pytest.mark.parametrize("variable", ["GRAPHLIFT_LOGS", "TORCH_LOGS"])
def test_the_environment_shows_a_break_of_a_real_program(variable, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import build_folder, torch, graphlift\n"
        "@graphlift.compile\n"
        "def f(x):\n"
        "    return x + x.sum().item()\n"
        "f(torch.ones(2))\n"
    )
    clean = {k: v for k, v in os.environ.items() if k not in ("GRAPHLIFT_LOGS", "TORCH_LOGS")}
    clean |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), variable: "graph_breaks"}
    done = subprocess.run([sys.executable, str(script)], env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^V.*\[__graph_breaks\] Graph break at .*program.py:4$", done.stderr, re.M), done.stderr
    assert re.search(r'^V.*\[__graph_breaks\] +File ".*program.py", line 4, in f$', done.stderr, re.M)
    assert re.search(r"^V.*\[__graph_breaks\] +Hint: Keep the value in a tensor", done.stderr, re.M)
