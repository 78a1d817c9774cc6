"""Records a program on stand-ins and runs what was recorded, node by node, on real tensors: the oracle of these tests."""

import torch
from torch import nn

import graphlift_tracer

DTYPES = {"bool_": torch.bool}


class Recorded:
    """A finished recording with the tensors that were its primals."""

    def __init__(self, traced, primals, structure, tracer):
        self.traced, self.primals, self.structure, self.tracer = traced, primals, structure, tracer

    @property
    def ops(self):
        """Names of the recorded operators, in order."""
        return [node["op"] for node in self.traced["nodes"] if node["op"]]

    def run(self, primals=None, tangents=(), symbols=None):
        """Outputs, new values of mutated inputs, gradients."""
        return run_graph(self.traced, [*(primals or self.primals), *tangents], symbols)


class StandIns:
    """Swaps tensors in modules and arguments for stand-ins, and back."""

    def __init__(self, symbolic=None):
        self.tracer = graphlift_tracer.Recording()
        self.primals = []
        self.symbolic = symbolic or {}
        self._seen = {}
        self._swapped = []

    def tensor(self, tensor, symbolic=()):
        """The stand-in of a tensor."""
        if id(tensor) not in self._seen:
            self._seen[id(tensor)] = self.tracer.stand_in(tensor, list(symbolic))
            self.primals.append(tensor)
        return self._seen[id(tensor)]

    def tree(self, value):
        """The same structure with stand-ins for tensors."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value, self.symbolic.get(id(value), ()))
        if isinstance(value, nn.Module):
            self.module(value)
            return value
        if isinstance(value, dict):
            return {key: self.tree(item) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self.tree(item) for item in value)
        return value

    def module(self, module):
        """Swaps the parameters and buffers of a module in place."""
        for child in module.modules():
            for table in (child._parameters, child._buffers):
                for name, tensor in list(table.items()):
                    if tensor is not None:
                        table[name] = self.tensor(tensor)
                        self._swapped.append((table, name, tensor))

    def restore(self):
        """Puts the real tensors back."""
        for table, name, tensor in self._swapped:
            table[name] = tensor


def leaves(value):
    """The tensors of a structure, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return []


def record(function, *args, symbolic=None):
    """Records function(*args); modules among the arguments have their parameters swapped while it runs."""
    stand_ins = StandIns(symbolic)
    compiling = torch.compiler.is_compiling
    try:
        fakes = stand_ins.tree(list(args))
        torch.compiler.is_compiling = lambda: True
        stand_ins.tracer.start()
        try:
            result = function(*fakes)
        finally:
            stand_ins.tracer.stop()
        outputs = leaves(result)
        traced = stand_ins.tracer.finish(outputs)
    finally:
        torch.compiler.is_compiling = compiling
        stand_ins.restore()
    assert traced["verify"] == "", traced["verify"] + "\n" + traced["text"]
    return Recorded(traced, stand_ins.primals, result, stand_ins.tracer)


def _operator(name):
    namespace, rest = name.split("::")
    packet, overload = rest.rsplit(".", 1)
    return getattr(getattr(getattr(torch.ops, namespace), packet), overload)


class _Runner:
    def __init__(self, traced, inputs, symbols):
        self.values = {}
        self.constants = traced["constants"]
        self.symbols = symbols or {}
        for node_id, tensor in zip(traced["graph_inputs"], inputs, strict=True):
            self.values[node_id] = [tensor]

    def number(self, text):
        return eval(text, {"min": min, "max": max}, self.symbols)  # noqa: S307

    def arg(self, arg):
        if isinstance(arg, list):
            return [self.arg(item) for item in arg]
        if not isinstance(arg, tuple):
            return arg
        tag, *rest = arg
        if tag == "value":
            return self.values[rest[0]][rest[1]]
        if tag == "sym":
            return self.number(rest[0])
        if tag == "dtype":
            return DTYPES.get(rest[0]) or getattr(torch, rest[0])
        if tag == "device":
            return torch.device(rest[0])
        if tag == "layout":
            return torch.strided
        if tag == "memory_format":
            return [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d][
                rest[0]
            ]
        raise AssertionError(arg)

    def call(self, node):
        args = [self.arg(arg) for arg in node["args"]]
        if node["op"] == "graphlift::constant":
            return [self.constants[args[0]].clone()]
        operator = _operator(node["op"])
        parameters = operator._schema.arguments
        positional = [v for v, p in zip(args, parameters, strict=True) if not p.kwarg_only]
        named = {p.name: v for v, p in zip(args, parameters, strict=True) if p.kwarg_only}
        result = operator(*positional, **named)
        flat = []
        for item in result if isinstance(result, (tuple, list)) else [result]:
            flat.extend(item if isinstance(item, (tuple, list)) else [item])
        return flat

    def check(self, node, results):
        """The types that were inferred are those that torch gives."""
        assert len(results) == len(node["outputs"]), node
        for value, type_ in zip(results, node["outputs"], strict=True):
            if type_ is None or node["op"] == "aten::mkldnn_rnn_layer.default" and type_["dtype"] == "uint8":
                continue  # no tensor, or a workspace whose size only oneDNN knows
            ints = lambda dims: [self.arg(dim) for dim in dims]  # noqa: E731
            assert list(value.shape) == ints(type_["sizes"]), (node["op"], value.shape, type_)
            assert str(value.dtype) == "torch." + type_["dtype"].rstrip("_"), (node["op"], value.dtype, type_)
            assert _same_strides(value, ints(type_["strides"])), (node["op"], value.shape, value.stride(), type_)


def _same_strides(value, strides):
    return value.numel() == 0 or all(
        a == b for a, b, size in zip(value.stride(), strides, value.shape, strict=True) if size > 1
    )


def run_graph(traced, inputs, symbols=None):
    """Values of the graph's outputs for these inputs."""
    # oneDNN's recurrent layers keep what their backward needs only in grad mode; nothing here requires grad.
    with torch.enable_grad():
        runner = _Runner(traced, [tensor.detach() for tensor in inputs], symbols)
        for node in traced["nodes"]:
            if node["op"]:
                results = runner.call(node)
                runner.check(node, results)
                runner.values[node["id"]] = results
        return [runner.arg(arg) for arg in traced["results"]]


def close(a, b, **tolerance):
    """Equal values, dtypes and shapes."""
    torch.testing.assert_close(a, b, check_stride=False, equal_nan=True, **tolerance)


def check_against_eager(function, *args, symbolic=None, symbols=None, seed=None, **tolerance):
    """Records the program; its graph gives eager's outputs, mutations and gradients. Returns the recording."""
    recorded = record(function, *args, symbolic=symbolic)
    traced = recorded.traced
    assert not traced["refuse"], traced["refuse"]
    before = [tensor.detach().clone() for tensor in recorded.primals]
    if seed is not None:
        torch.manual_seed(seed)
    expected = leaves(function(*args))
    # Bases of views among the outputs follow them; the program does not return those.
    expected += [view._base for plan, view in _views_of_hidden(traced, expected)]
    for plan, real in zip(traced["outputs"], expected, strict=True):
        assert plan["requires_grad"] == real.requires_grad, (plan, real)
    tangents, roots = [None] * traced["tangents"], [None] * traced["tangents"]
    for plan, real in zip(traced["outputs"], expected, strict=True):
        if plan["tangent"] >= 0:
            tangents[plan["tangent"]] = torch.randn_like(real) if real.dtype != torch.bool else real
            roots[plan["tangent"]] = real
    for plan, real in zip(traced["inputs"], recorded.primals, strict=True):
        if plan["tangent"] >= 0:
            tangents[plan["tangent"]], roots[plan["tangent"]] = torch.randn_like(real), real
    if seed is not None:
        torch.manual_seed(seed)
    results = recorded.run(before, tangents, symbols)
    _compare(traced, recorded.primals, before, expected, roots, tangents, results, tolerance)
    return recorded


def _gradients(roots, inputs, tangents):
    if all(tensor.is_leaf and tensor.grad is None for tensor in inputs):
        torch.autograd.backward(roots, tangents)
        gradients = [tensor.grad for tensor in inputs]
        for tensor in inputs:
            tensor.grad = None
        return gradients
    return torch.autograd.grad(roots, inputs, tangents, allow_unused=True)


def _views_of_hidden(traced, expected):
    hidden = {}
    for plan, real in zip(traced["outputs"], expected, strict=False):
        if plan["aliasing"] == "view_of_output" and plan["of"] >= len(expected):
            hidden.setdefault(plan["of"], (plan, real))
    return [hidden[of] for of in sorted(hidden)]


def _compare(traced, primals, before, expected, roots, tangents, results, tolerance):
    results = list(results)
    for plan, real in zip(traced["outputs"], expected, strict=True):
        if plan["aliasing"] != "input":
            close(results.pop(0), real.detach(), **tolerance)
    for plan, real, old in zip(traced["inputs"], primals, before, strict=True):
        if plan["mutated_data"]:
            close(results.pop(0), real.detach(), **tolerance)
        else:
            close(old, real.detach())
    wanted = [i for i, plan in enumerate(traced["inputs"]) if plan["type"]["requires_grad"]]
    inputs = [primals[i] for i in wanted]
    if not roots:
        return
    gradients = _gradients(roots, inputs, tangents)
    for i, gradient in zip(wanted, gradients, strict=True):
        plan = traced["inputs"][i]
        if gradient is None:
            assert plan["gradient"] < 0
            continue
        close(results[plan["gradient"]], gradient, **tolerance)
