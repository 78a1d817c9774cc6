"""What a backend of the program's own gets: torch's functions as the program calls them, run under autograd; and what
comes as operators of aten instead, with a reason that is logged."""

import collections
import operator
import pathlib
import re
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from judging import check, check_module
from recording_backend import RecordingBackend
from torch import nn

import graphlift


class Counting(RecordingBackend):
    def targets(self, number=0):
        nodes = self.modules[number].graph.nodes
        return collections.Counter(node.target for node in nodes if node.op in ("call_function", "call_method"))

    def operators(self):
        return [target for i in range(len(self.modules)) for target in self.targets(i) if "aten" in str(target)]


@pytest.fixture
def calls(monkeypatch):
    """Makes graphlift.compile use a backend that counts; it must get no operators of aten."""
    plain, backend = graphlift.compile, Counting()
    monkeypatch.setattr(graphlift, "compile", lambda function: plain(function, backend=backend))
    return backend


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(4, 8), nn.Linear(8, 4), nn.LayerNorm(4)
        self.register_buffer("scale", torch.full((4,), 0.5))

    def forward(self, x):
        y = self.second(F.gelu(self.first(x)))
        return self.norm(x + y * self.scale).softmax(-1)


def test_a_graph_has_the_calls_of_the_program(calls):
    check_module(Block, lambda: (torch.randn(3, 4),))
    assert len(calls.modules) == 1  # the backward is autograd's own
    assert calls.targets() == {
        F.linear: 2,
        F.gelu: 1,
        F.layer_norm: 1,
        operator.add: 1,
        operator.mul: 1,
        "softmax": 1,
    }
    module, examples = calls.modules[0], calls.examples[0]
    nodes = list(module.graph.nodes)
    assert {node.op for node in nodes} == {"placeholder", "call_function", "call_method", "output"}
    placeholders = [node for node in nodes if node.op == "placeholder"]
    assert len(placeholders) == len(examples) == 8 and not list(module.parameters())
    assert sum(isinstance(example, nn.Parameter) for example in examples) == 6


def test_graphs_are_printed_and_run_as_code(calls):
    torch.manual_seed(0)
    net, x = Block(), torch.randn(3, 4)
    torch.testing.assert_close(graphlift.compile(net)(x), net(x))
    module, examples = calls.modules[0], calls.examples[0]
    assert "torch._C._nn.linear(" in module.code and ".softmax(-1)" in module.code
    scope = {"torch": torch, "device": torch.device}
    exec(module.code, scope)
    torch.testing.assert_close(scope["forward"](None, *examples)[0], net(x))
    assert "layer_norm" in str(module.graph)


def test_nodes_know_their_lines_and_results(calls):
    def program(x):
        y = x.relu()
        return y.split(1)

    graphlift.compile(program)(torch.randn(2, 3))
    relu, split, *_ = (node for node in calls.modules[0].graph.nodes if node.op == "call_method")
    trace = relu.meta["stack_trace"]
    assert f'File "{__file__}", line {program.__code__.co_firstlineno + 1}, in program' in trace
    assert trace.endswith("y = x.relu()\n")
    assert relu.meta["example_value"].shape == (2, 3)
    assert [part.shape for part in split.meta["example_value"]] == [(1, 3)] * 2


def in_place(x, y):
    z = x * 2
    z.add_(y)
    z[0] = 1
    z[:, 1] += 3
    z.clamp_(max=2)
    F.relu(z, inplace=True)
    y.mul_(0.5)
    return z, y


def views(x, y):
    a = x.view(3, 2)
    b, c = (y + 1).split(1)
    b.add_(1)
    return a.T, b, c, x.unsqueeze(0)[..., 1:], y.detach()


def regions_of_grad_mode(x, y):
    with torch.no_grad():
        w = (x * y).sum()
    with torch.enable_grad():
        v = x * w
    return w, v, (x @ y.T).requires_grad


def mixed_precision(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = x @ y.T
    return z, z.float() + 1


def random_numbers(x, y):
    return torch.rand(2, 3) + F.dropout(x, 0.5), torch.randn_like(y), torch.randperm(4), x.bernoulli()


def operators_of_python(x, y):
    z = 2 - x
    z = z**2 / (y.abs() + 1) % 3
    return -z, +z, ~(z > 1), 1 // (y.abs() + 1), 2**x, (x == y) | (x != 0), x @ y.T, abs(z), sum([x, y])


def many_results(x, y):
    values, places = x.max(-1)
    top = torch.topk(y, 2)
    return (
        values,
        places,
        top.values,
        torch.cat([x, y]),
        torch.stack(list(x)),
        torch.einsum("ij,kj->ik", x, y),
        x.T,
        x.mT,
    )


def made_of_nothing(x, y):
    return torch.tensor([[1.0, 2.0, 3.0]]) + x, torch.zeros_like(y), torch.arange(3) * y, torch.eye(3) @ x.T


def shown(x, y):
    z = (x * 2).detach()
    print("before", z)
    z += 1
    print("behind", z)
    return z * y


def attributes(x, y):
    z = x.detach().clone()
    w = y.data + 1
    return z, w, (x + 1).real, len(x), x.shape, list(y.T)


def with_arguments_by_name(x, y):
    return F.softmax(input=x, dim=-1), torch.sum(y, dim=(0,), keepdim=True), x.new_zeros((2, 2)), x.to(torch.float64)


PROGRAMS = (in_place, views, regions_of_grad_mode, mixed_precision, random_numbers, operators_of_python, many_results)
PROGRAMS += (made_of_nothing, shown, attributes, with_arguments_by_name)


def pair():
    return torch.randn(2, 3, requires_grad=True), torch.randn(2, 3)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program, calls, capsys):
    check(program, pair, graphs=1, breaks=0)
    assert len(calls.modules) == 1 and (program is operators_of_python or not calls.operators())
    lines = capsys.readouterr().out.splitlines()  # three calls, each compiled and then in eager
    parts = [lines[i * len(lines) // 6 : (i + 1) * len(lines) // 6] for i in range(6)]
    assert parts[::2] == parts[1::2] and bool(lines) == (program is shown)


def test_modules_with_buffers_and_draws(calls):
    make = lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.ReLU(inplace=True))  # noqa: E731
    check_module(make, lambda: (torch.randn(6, 3),))
    assert calls.targets() == {F.linear: 1, F.batch_norm: 1, F.dropout: 1, F.relu: 1, "add_": 1}


@pytest.mark.parametrize("train", [True, False])
def test_attention_takes_the_way_that_it_takes_in_eager(train, calls):
    make = lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)  # noqa: E731
    with torch.set_grad_enabled(train):
        check_module(make, lambda: (torch.randn(2, 5, 8),), train=train)
    names = {getattr(target, "__name__", target) for target in calls.targets()}
    assert ("multi_head_attention_forward" in names) == train and ("_transformer_encoder_layer_fwd" in names) != train


def test_recurrent_modules(calls):
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.LSTM(3, 4, batch_first=True)

        def forward(self, x):
            return self.inner(x)[0][:, -1]

    check_module(Last, lambda: (torch.randn(2, 5, 3),))
    assert torch.lstm in calls.targets() and not calls.operators()


def test_symbolic_sizes_are_inputs():
    def program(x):
        return (
            x.reshape(-1).expand(2, -1) * (x.shape[0] + 3),
            torch.zeros(x.shape[0] * 2, x.size(1)),
            x[: x.shape[0] - 1],
        )

    backend = Counting()
    compiled = graphlift.compile(program, backend=backend, dynamic=True)
    for rows in (3, 5, 9):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), program(x))
    assert graphlift.graph_count() == 1 and len(backend.modules) == 1
    assert 3 in backend.examples[0] and not backend.operators()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 7 * ctx.saved_tensors[0]  # not the real one: it has to be asked


def own_gradient(x, y):
    return Cube.apply(x) + y


def gradients_inside(x, y):
    (gradient,) = torch.autograd.grad((x * x).sum(), x)
    return gradient + y


def transformed(x, y):
    return torch.func.vmap(torch.sin)(x) * y


def kept_by_a_checkpoint(x, y):
    return torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False) * y


REFUSED = {
    own_gradient: "an autograd.Function: .*Cube",
    gradients_inside: "the program runs the autograd engine",
    transformed: "a transform of torch.func",
    kept_by_a_checkpoint: "torch.utils.checkpoint",
}


@pytest.mark.parametrize("program", REFUSED, ids=lambda f: f.__name__)
def test_what_is_no_call_comes_as_operators_and_says_so(program, calls, logged):
    graphlift.set_logs("perf_hints")
    check(program, pair, graphs=1, breaks=0)
    assert calls.operators()
    (line,) = [line for line in logged("perf_hints") if "operators of aten" in line]
    assert re.search(REFUSED[program], line), line


def test_a_float_that_varies_comes_as_operators(calls, logged):
    graphlift.set_logs("perf_hints")
    compiled, x = graphlift.compile(lambda x, rate: x * rate), torch.randn(3)
    for rate in (0.5, 0.25, 0.125):
        torch.testing.assert_close(compiled(x, rate), x * rate)
    assert [bool(calls.targets(i)[operator.mul]) for i in range(len(calls.modules))] == [True, False]
    assert any("a float that varies" in line for line in logged("perf_hints"))


def test_errors_of_the_program_are_met_by_the_program(calls):
    def program(x, places):
        try:
            return x[places] + 1
        except IndexError:
            return x * 0

    compiled, x = graphlift.compile(program), torch.randn(3)
    for places in ([0, 2], [1, 1], [0, 9]):
        torch.testing.assert_close(compiled(x, torch.tensor(places)), program(x, torch.tensor(places)))
    assert graphlift.graph_count() >= 1 and not calls.operators()


def test_errors_of_the_backend_pass_through():
    def late(module, example_inputs):
        def run(*inputs):
            raise IndexError("late")

        return run

    compiled = graphlift.compile(lambda x: x * 2, backend=late)
    with pytest.raises(IndexError, match="late"):
        compiled(torch.ones(1))


def test_an_input_that_a_backend_returns_stays_the_callers():
    x = torch.ones(2, requires_grad=True)
    got = graphlift.compile(lambda x: x * 1, backend=lambda module, inputs: lambda x: (x,))(x)
    assert got is not x and got.grad_fn is not None and x.grad_fn is None and torch.equal(got, x)


def test_a_rewritten_graph_is_what_runs_forward_and_backward():
    def halved(module, example_inputs):
        for node in module.graph.nodes:
            if node.target is operator.mul:
                node.args = (node.args[0], node.args[1] / 2)
        module.recompile()
        return module

    x = torch.ones(2, requires_grad=True)
    graphlift.compile(lambda x: (x * 4).sum(), backend=halved)(x).backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_ambient_state_that_is_left_changed():
    def program(x):
        y = x * 2
        torch.set_grad_enabled(False)
        return y, x * 3

    backend = Counting()
    compiled, x = graphlift.compile(program, backend=backend), torch.ones(2, requires_grad=True)
    try:
        for _ in range(2):
            torch.set_grad_enabled(True)
            y, z = compiled(x)
            assert y.requires_grad and not z.requires_grad and not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    assert graphlift.graph_count() == 1 and not backend.operators()


def test_modes_of_the_program_stay_the_programs(calls):
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    compiled, x = graphlift.compile(lambda x: x.sin() + torch.overrides._len_torch_function_stack()), torch.ones(2)
    torch.testing.assert_close(compiled(x), x.sin())
    with torch.device("cpu"):
        torch.testing.assert_close(compiled(x), x.sin() + 1)
    with Mode():
        torch.testing.assert_close(compiled(x), x.sin() + 1)
    assert "sin" in seen


def trained(x, y):
    z = torch.relu(x) * 2
    z += y
    z[0] = 0
    y.mul_(2)
    return z.view(3, 2), z.sum(), y


@pytest.mark.parametrize("name", ["eager", "aot_eager", "inductor"])
def test_backends_of_torchs_registry(name, monkeypatch):
    plain = graphlift.compile
    monkeypatch.setattr(graphlift, "compile", lambda function: plain(function, backend=name))
    check(trained, pair, graphs=1, breaks=0)


@pytest.mark.parametrize("name", ["aot_eager", "inductor"])
def test_backends_of_torchs_registry_and_sizes_that_vary(name):
    net = Block()
    compiled = graphlift.compile(net, backend=name, dynamic=True)
    for rows in (2, 5, 3, 5):
        x = torch.randn(rows, 4)
        net.zero_grad()
        got = compiled(x)
        got.sum().backward()
        gradients = [p.grad.clone() for p in net.parameters()]
        net.zero_grad()
        want = net(x)
        want.sum().backward()
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(gradients, [p.grad for p in net.parameters()], atol=1e-5, rtol=1e-4)
    assert graphlift.graph_count() == 1


def test_every_backend_that_torch_lists_is_found():
    from torch._dynamo import list_backends

    for name in list_backends(exclude_tags=()):
        assert callable(graphlift.compile(lambda x: x, backend=name))


# In a process of its own: torch's compiler is loaded, and torch.compile redirected.
REDIRECTED = """
import copy, torch, torch._dynamo, graphlift
from graphlift.redirect import install
install()
plain = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
model = torch.compile(plain)
assert isinstance(model, torch._dynamo.OptimizedModule) and isinstance(model, torch.nn.Sequential)
assert model._orig_mod.state_dict().keys() == plain.state_dict().keys() == model.state_dict().keys()
assert model.__class__.__name__ == "Sequential" and isinstance(copy.deepcopy(model), torch._dynamo.OptimizedModule)
x = torch.randn(4, 2)
torch.testing.assert_close(model(x), plain(x))
before = graphlift.graph_count()
torch.testing.assert_close(model.dynamo_ctx(lambda x: plain(x) + 1)(x), plain(x) + 1)
assert before == 1 and graphlift.graph_count() == 2
"""


def test_compiled_modules_are_torchs_where_its_compiler_is_loaded():
    tests = str(pathlib.Path(__file__).parent.parent)
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {tests!r}); import build_folder\n{REDIRECTED}"]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_program_asks_whether_it_is_overridden(calls):
    def overridable(x):
        if torch.overrides.has_torch_function_unary(x):
            return torch.overrides.handle_torch_function(overridable, (x,), x)
        return x.sin()

    def program(x):
        return overridable(x) + (100 if torch.overrides.has_torch_function((x,)) else 1)

    check(program, lambda: (torch.randn(3),), graphs=1, breaks=0)
    assert not calls.operators() and calls.targets()["sin"] == 1


def test_a_gradient_that_was_taken_away_before_an_error(calls):
    def program(x, weight, places):
        gradient = weight.grad
        weight.grad = None
        return (x + gradient)[places]

    def call(f, place):
        weight = torch.ones(3, requires_grad=True)
        weight.grad = torch.ones(3)
        return f(torch.ones(3), weight, torch.tensor([place])).tolist(), weight.grad

    compiled = graphlift.compile(program)
    for _ in range(2):
        assert call(compiled, 1) == call(program, 1) == ([2.0], None)
    for f in (program, compiled):
        with pytest.raises(IndexError):
            call(f, 9)
    assert graphlift.graph_count() == 1 and not calls.operators()


def test_code_of_a_graph_whose_sizes_vary(logged):
    graphlift.set_logs("graph_code")
    compiled = graphlift.compile(lambda x: torch.zeros(x.shape[0]) + x, backend=Counting(), dynamic=True)
    assert compiled(torch.ones(4)).tolist() == [1.0] * 4
    assert any("torch.zeros(s0)" in line for line in logged("graph_code"))
