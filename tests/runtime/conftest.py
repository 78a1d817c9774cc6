"""Regions made of graph text: what a capture would give, written down."""

import pytest
import torch

TYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int64: "i64",
    torch.bool: "bool",
    torch.bfloat16: "bf16",
    torch.complex64: "c64",
    torch.int32: "i32",
}


def _runtime():
    return pytest.importorskip("graphlift_runtime")


def type_text(tensor, grad=None):
    """The text of a tensor's type."""
    sizes = ", ".join(map(str, tensor.shape))
    strides = ", ".join(map(str, tensor.stride()))
    offset = f" @({tensor.storage_offset()})" if tensor.storage_offset() else ""
    requires = tensor.requires_grad if grad is None else grad
    return f"{TYPES[tensor.dtype]}[{sizes}]{{{strides}}}{offset} {tensor.device}" + (" grad" if requires else "")


class GraphText:
    """Builds the text of a joint graph, call by call, taking the types from running the calls on real tensors."""

    def __init__(self):
        self.lines = []
        self.values = []

    def input(self, tensor, name=None):
        """Adds an input with the tensor's type; returns its number."""
        number = len(self.values)
        self.lines.append(f"%{number}: {type_text(tensor)} = input {name or f'x{number}'}")
        self.values.append(tensor.detach())
        return number

    def call(self, op, *args, backward=False):
        """Adds a call with one output. Ints that stand for values are given as Value."""
        number = len(self.values)
        namespace, name = op.split("::")
        packet, overload = name.split(".")
        function = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
        parameters = function._schema.arguments
        args = [*args, *(parameter.default_value for parameter in parameters[len(args) :])]
        real = self._real(args)
        positional = [value for value, parameter in zip(real, parameters) if not parameter.kwarg_only]
        named = {parameter.name: value for value, parameter in zip(real, parameters) if parameter.kwarg_only}
        result = function(*positional, **named)
        types = [type_text(r, False) if isinstance(r, torch.Tensor) else "none" for r in _results(result)]
        shown = types[0] if len(types) == 1 else f"({', '.join(types)})"
        text = ", ".join(self._text(arg) for arg in args)
        self.lines.append(f"%{number}: {shown} = {op}({text}){' backward' if backward else ''}")
        self.values.append(result)
        return Value(number)

    def constant(self, index, tensor):
        """Adds a node for a tensor that is built into the graph."""
        self.lines.append(f"%{len(self.values)}: {type_text(tensor)} = graphlift::constant({index})")
        self.values.append(tensor)
        return Value(len(self.values) - 1)

    def _real(self, args):
        return [
            arg.of(self.values) if isinstance(arg, Value) else self._real(arg) if isinstance(arg, list) else arg
            for arg in args
        ]

    def _text(self, arg):
        if isinstance(arg, Value):
            return f"%{arg.number}" if arg.index is None else f"%{arg.number}.{arg.index}"
        if isinstance(arg, list):
            return "[" + ", ".join(map(self._text, arg)) + "]"
        if arg is None:
            return "none"
        if isinstance(arg, torch.dtype):
            return str(arg).removeprefix("torch.")
        if isinstance(arg, torch.device):
            return f"device({arg})"
        if isinstance(arg, str):
            return f'"{arg}"'
        return repr(arg).lower() if isinstance(arg, bool) else repr(arg)

    def text(self, *outputs):
        """The whole text."""
        return "\n".join([*self.lines, "return (" + ", ".join(map(self._text, outputs)) + ")"]) + "\n"


class Value:
    """A value of the graph, or one output of a call that has several."""

    def __init__(self, number, index=None):
        self.number = number
        self.index = index

    def __getitem__(self, index):
        return Value(self.number, index)

    def of(self, values):
        """The tensor that stands at this value while the graph is built."""
        return values[self.number] if self.index is None else values[self.number][self.index]


def _results(result):
    return result if isinstance(result, (tuple, list)) else [result]


class Region:
    """Collects a joint graph and its plans, then builds the executable."""

    def __init__(self):
        self.graph = GraphText()
        self.inputs = []
        self.outputs = []
        self.constants = []
        self.results = []
        self.new_values = []
        self.gradients = []

    def input(self, tensor, **plan):
        """A primal."""
        self.inputs.append(plan)
        return Value(self.graph.input(tensor))

    def tangent(self, tensor):
        """A tangent of the tensor's type."""
        return Value(self.graph.input(tensor.detach(), f"tangent{len(self.graph.values)}"))

    def call(self, op, *args, backward=False):
        """An operator call."""
        return self.graph.call(op, *args, backward=backward)

    def constant(self, tensor):
        """A tensor that is built into the graph."""
        self.constants.append(tensor)
        return self.graph.constant(len(self.constants) - 1, tensor)

    def output(self, value=None, **plan):
        """An output of the region."""
        self.outputs.append(plan)
        if value is not None:
            self.results.append(value)

    def write(self, value):
        """The new value of the next mutated input."""
        self.new_values.append(value)

    def gradient(self, value):
        """The next gradient."""
        self.gradients.append(value)

    def build(self):
        """The runnable region: called with a list of tensors."""
        text = self.graph.text(*self.results, *self.new_values, *self.gradients)
        return _runtime().build(text, self.inputs, self.outputs, self.constants)


@pytest.fixture
def region():
    """An empty region."""
    return Region()


@pytest.fixture
def build():
    """Builds a region from text and plans."""
    return _runtime().build
