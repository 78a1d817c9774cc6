"""Backends that a program brings along: graphs arrive as torch.fx modules, of operators with a backward of their own where
that is asked for (test_program_calls.py has the program's calls), and results are used."""

import gc
import os
import subprocess
import sys
import weakref

import pytest
import torch
import torch.nn.functional as F
from judging import check, check_module, same
from recording_backend import RecordingBackend
from torch import fx, nn

import graphlift

ATEN = {"graph_level": "aten"}


class Recorder(RecordingBackend):
    def targets(self, number):
        return [str(node.target) for node in self.modules[number].graph.nodes if node.op == "call_function"]


def test_forward_and_backward_arrive_as_modules():
    backend, net = Recorder(), nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2))
    compiled, x = graphlift.compile(net, backend=backend, options=ATEN), torch.randn(5, 3)
    compiled(x).sum().backward()
    got = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x).sum().backward()
    same(got, [p.grad for p in net.parameters()], "gradients")
    assert len(backend.modules) == 2 and all(isinstance(module, fx.GraphModule) for module in backend.modules)
    assert backend.targets(0).count("aten.addmm.default") == 2 and "aten.gelu.default" in backend.targets(0)
    assert "aten.gelu_backward.default" in backend.targets(1)
    for module, examples in zip(backend.modules, backend.examples, strict=True):
        assert len(examples) == sum(node.op == "placeholder" for node in module.graph.nodes)
        assert all(isinstance(example, torch.Tensor) for example in examples)
    stack = next(node.meta["stack_trace"] for node in backend.modules[0].graph.nodes if node.op == "call_function")
    assert 'File "' in stack
    compiled(x).sum().backward()
    assert len(backend.modules) == 2 and graphlift.graph_count() == 1


def test_what_the_backend_returns_is_what_runs():
    def wrong_on_purpose(module, example_inputs):
        return lambda *inputs: [result + 1 for result in module(*inputs)]

    compiled = graphlift.compile(lambda x: x * 2, backend=wrong_on_purpose)
    assert [compiled(torch.ones(2)).tolist() for _ in range(2)] == [[3.0, 3.0]] * 2


def several_results(x):
    values, places = (x * 2).max(-1)
    first, second = x.split([1, 2], -1)
    normed = F.layer_norm(x, (3,))
    return values, places, first + 1, second.sum(), normed, torch.full((2,), 3, dtype=torch.int32), x.to(torch.bfloat16)


def views_and_writes(x):
    y = x.clone()
    y[0].mul_(3)
    return y.view(-1), y, x.t()


def numbers_of_all_kinds(x):
    z = torch.complex(x, x) * (1 + 2j)
    return (
        z.real,
        x.clamp(min=float("-inf"), max=1.5),
        x.to("cpu", memory_format=torch.contiguous_format),
        x.roll((1, 2), (0, 1)),
    )


@pytest.mark.parametrize("program", [several_results, views_and_writes, numbers_of_all_kinds], ids=lambda f: f.__name__)
def test_programs(program, monkeypatch):
    asked = []

    def backend(module, example_inputs):
        asked.append(module)
        return fx.Interpreter(module).run  # each node by itself: no code is generated

    plain = graphlift.compile
    monkeypatch.setattr(graphlift, "compile", lambda function: plain(function, backend=backend, options=ATEN))
    check(program, lambda: (torch.arange(6.0).reshape(2, 3).requires_grad_(),), graphs=1, breaks=0)
    assert len(asked) >= 2


def test_modules_with_buffers_and_draws(monkeypatch):
    plain = graphlift.compile
    monkeypatch.setattr(graphlift, "compile", lambda function: plain(function, backend=Recorder()))
    net = nn.Sequential
    check_module(lambda: net(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)), lambda: (torch.randn(6, 3),))


def test_symbolic_sizes_are_inputs():
    backend = Recorder()
    compiled = graphlift.compile(
        lambda x: x.reshape(-1).expand(2, -1) * (x.shape[0] + 3), backend=backend, dynamic=True
    )
    for rows in (3, 5, 9):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), x.reshape(-1).expand(2, -1) * (rows + 3))
    assert graphlift.graph_count() == 1 and len(backend.modules) == 1
    assert 3 in backend.examples[0]


def test_a_constant_is_a_buffer():
    constant, backend = torch.arange(3.0), Recorder()
    compiled = graphlift.compile(lambda x: x + torch.tensor([1.0, 2.0, 3.0]), backend=backend)
    torch.testing.assert_close(compiled(constant), constant * 2 + 1)
    assert graphlift.graph_count() == 1


def test_wrong_results_are_told():
    def given(result):
        return graphlift.compile(lambda x: x * 2, backend=lambda module, inputs: result)

    with pytest.raises(TypeError, match="returned a int, which is not callable"):
        given(3)(torch.ones(1))
    with pytest.raises(TypeError, match="returned a Tensor; the graph has 1 outputs"):
        given(lambda x: x)(torch.ones(1))
    with pytest.raises(TypeError, match="returned 2 results; the graph has 1 outputs"):
        given(lambda x: (x, x))(torch.ones(1))
    with pytest.raises(TypeError, match="returned a str for an output that is a tensor"):
        given(lambda x: ("x",))(torch.ones(1))


def test_errors_of_the_backend_pass_through():
    def refusing(module, example_inputs):
        raise LookupError("not this graph")

    compiled = graphlift.compile(lambda x: x * 2, backend=refusing)
    for _ in range(2):
        with pytest.raises(LookupError, match="not this graph"):
            compiled(torch.ones(1))

    def late(module, example_inputs):
        def run(*inputs):
            raise ZeroDivisionError("late")

        return run if len(seen) else seen.append(1) or module.forward

    seen, w = [], torch.ones(2, requires_grad=True)
    loss = graphlift.compile(lambda w: w.sin().sum(), backend=late, options=ATEN)(w)
    with pytest.raises(ZeroDivisionError, match="late"):
        loss.backward()


def test_an_input_returned_as_result_stays_the_callers():
    def lazy(module, example_inputs):
        return lambda x: (x,)

    x = torch.ones(2, requires_grad=True)
    got = graphlift.compile(lambda x: x * 1, backend=lazy)(x)
    assert got is not x and got.grad_fn is not None and x.grad_fn is None and torch.equal(got, x)


def test_breaks_and_what_the_backend_calls_stay_out_of_the_capture():
    seen = []

    def backend(module, example_inputs):
        seen.append(graphlift.is_compiling())
        return lambda *inputs: Model.twice(module, inputs)

    class Model:
        @staticmethod
        def twice(module, inputs):
            assert not graphlift.is_compiling()
            return module(*inputs)

    def program(x):
        y = x * 2
        return y + y.sum().item()

    compiled = graphlift.compile(program, backend=backend)
    for _ in range(2):
        assert compiled(torch.ones(2)).tolist() == [6.0, 6.0]
    assert seen == [False, False] and graphlift.graph_count() == 2


def test_the_backend_goes_with_what_it_compiled():
    backend = Recorder()
    alive = weakref.ref(backend)
    compiled = graphlift.compile(lambda x: x * 2, backend=backend)
    compiled(torch.ones(1))
    del backend, compiled
    gc.collect()
    assert alive() is None


def test_fx_is_loaded_for_such_a_backend_alone():
    program = (
        "import sys, build_folder, torch\n"
        "before = 'torch.fx' in sys.modules\n"
        "import graphlift\n"
        "graphlift.compile(lambda x: x * 2)(torch.ones(1))\n"
        "assert 'graphlift.foreign' not in sys.modules and ('torch.fx' in sys.modules) == before\n"
        "graphlift.compile(lambda x: x * 2, backend=lambda gm, inputs: gm.forward)(torch.ones(1))\n"
        "assert 'graphlift.foreign' in sys.modules and 'torch._dynamo' not in sys.modules\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def test_a_result_is_needed_where_the_graph_has_one():
    compiled = graphlift.compile(lambda x: x * 2, backend=lambda module, inputs: lambda x: (None,))
    with pytest.raises(TypeError, match="returned None for an output that is a tensor"):
        compiled(torch.ones(1))


@pytest.mark.parametrize("name", ["inductor", "aot_eager", "eager", "cudagraphs", "pre_dispatch_eager"])
def test_backends_by_the_names_that_torch_lists(name):
    if name == "cudagraphs" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    net = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4), nn.Linear(4, 2))
    before = graphlift.graph_count()
    compiled, x = graphlift.compile(net, backend=name), torch.randn(5, 3)
    for _ in range(2):
        net.zero_grad()
        result = compiled(x)
        result.sum().backward()
        got = [p.grad.clone() for p in net.parameters()]
        net.zero_grad()
        expected = net(x)
        expected.sum().backward()
        torch.testing.assert_close(result, expected)
        for mine, eager in zip(got, net.parameters(), strict=True):
            torch.testing.assert_close(mine, eager.grad)
    assert graphlift.graph_count() == before + 1


def test_an_unknown_name_is_answered_with_all_that_are_valid():
    with pytest.raises(ValueError, match="unknown backend 'inductr'; valid backends: .*aot_eager.*inductor.*native"):
        graphlift.compile(lambda x: x, backend="inductr")
