"""Backends that a program brings along, at the level of torch's functions: graphs have the calls as they were made.

Owns the torch.fx.GraphModule of such a graph: call_function and call_method nodes, every tensor from outside a
placeholder, no get_attr. It runs on the program's own tensors, under autograd, and writes into them where the program
does. What could not be written down so comes as operators of aten instead (foreign.py). Must not decide that: the
recording does.
"""

import builtins
import linecache
import operator
import threading
import types

import torch
from torch import fx

from .foreign import SymbolicInts, checked_results

# Methods of Tensor that stand for Python's operators: the function, and whether the operands are swapped.
_OPERATORS = {
    "__getitem__": (operator.getitem, False),
    "__setitem__": (operator.setitem, False),
    "__rsub__": (operator.sub, True),
    "__rdiv__": (operator.truediv, True),
    "__rtruediv__": (operator.truediv, True),
    "__rfloordiv__": (operator.floordiv, True),
    "__floordiv__": (operator.floordiv, False),
    "__rpow__": (operator.pow, True),
    "__rmod__": (operator.mod, True),
    "__rmatmul__": (operator.matmul, True),
    "__abs__": (operator.abs, False),
    "__contains__": (operator.contains, False),
}


class CallProgram:
    """One graph. The backend is asked when it runs first, with the inputs of that call as examples.

    A backend with a true attribute `static_sizes` is asked once for each set of sizes that vary.
    """

    def __init__(self, backend, description):
        self._backend = backend
        self._builder = _Builder(*description)
        self._outputs = len(description[1])
        self._ready = {}
        self._asking = threading.RLock()

    @property
    def inputs(self):
        """Numbers of the region's inputs that the module takes, in order."""
        return self._builder.inputs

    @property
    def symbols(self):
        """Numbers of the symbols that it takes in front of them."""
        return self._builder.symbols

    def __call__(self, tensors, numbers):
        """The graph's outputs."""
        key = tuple(numbers) if getattr(self._backend, "static_sizes", False) else ()
        run = self._ready.get(key) or self._ask(key, numbers, tensors)
        return checked_results(run(*numbers, *tensors), [True] * self._outputs)

    def _ask(self, key, numbers, tensors):
        with self._asking:
            if key in self._ready:  # another thread was faster
                return self._ready[key]
            module = self._builder.module(dict(zip(self._builder.symbols, numbers, strict=True)))
            run = self._backend(module, [*numbers, *tensors])
            if not callable(run):
                raise TypeError(f"a custom backend returned a {type(run).__name__}, which is not callable")
            self._ready[key] = run
            return run

    def text(self):
        """The graph as Python code."""
        return self._builder.module(None).code

    def raised_by_program(self, error):
        """Whether one of the program's own calls raised it: called by the module's code, and by nobody in between."""
        frames, traceback = [], error.__traceback__
        while traceback:
            frames.append(traceback.tb_frame.f_code.co_filename)
            traceback = traceback.tb_next
        inner = [i for i, file in enumerate(frames) if file.startswith("<eval_with_key>")]
        torchs = torch.__file__.removesuffix("__init__.py")
        return bool(inner) and all(file.startswith(torchs) for file in frames[inner[-1] + 1 :])


class _Builder(SymbolicInts):
    def __init__(self, nodes, outputs):
        self.nodes, self.outputs = nodes, outputs
        everything = [(args, kwargs) for _, args, kwargs, _, _ in nodes], outputs
        self.types = dict(sorted(_inputs_in(everything)))
        self.inputs = list(self.types)
        self.symbols = sorted({number for given in _symbolic_in(everything) for number in self.numbers_in(given)})

    def module(self, hints):
        """A new module; `hints`: what the symbols are in the call that it is made for. None: there is no such call."""
        self.graph, self.calls, self.hints = fx.Graph(), [], hints
        self.symbol_nodes = {f"s{i}": self.graph.placeholder(f"s{i}", type_expr=int) for i in self.symbols}
        self.placeholders = {}
        for number, kind in self.types.items():
            self.placeholders[number] = self.graph.placeholder(f"x{number}")
            self._describe(self.placeholders[number], kind)
        for function, args, kwargs, result, stack in self.nodes:
            self.calls.append(self._call(function, self._argument(args), self._argument(kwargs) or {}))
            self.calls[-1].meta["stack_trace"] = _stack_trace(stack)
            self._describe(self.calls[-1], result)
        self.graph.output(tuple(self._argument(output) for output in self.outputs))
        self.graph.lint()
        return fx.GraphModule(torch.nn.Module(), self.graph)

    def _call(self, function, args, kwargs):
        name = getattr(function, "__name__", "")
        owner = getattr(function, "__self__", None)
        if isinstance(owner, types.GetSetDescriptorType | property):
            attribute = owner.__name__ if isinstance(owner, types.GetSetDescriptorType) else owner.fget.__name__
            if name == "__get__":
                return self.graph.call_function(builtins.getattr, (args[0], attribute))
            return self.graph.call_function(builtins.setattr, (args[0], attribute, args[1]))
        if getattr(torch.Tensor, name, None) is function:
            if name not in _OPERATORS:
                return self.graph.call_method(name, args, kwargs)
            function, swapped = _OPERATORS[name]
            args = args[::-1] if swapped else args
        return self.graph.call_function(function, args, kwargs)

    def _argument(self, given):
        if not isinstance(given, tuple):
            return given
        kind, *parts = given
        if kind == "symbolic":
            return self.symbolic(parts[0])
        if kind == "input":
            return self.placeholders[parts[0]]
        if kind == "value":
            node = self.calls[parts[0]]
            for index in parts[1]:
                node = self.graph.call_function(operator.getitem, (node, index))
            return node
        if kind == "dict":
            return {key: self._argument(value) for key, value in parts[0].items()}
        items = [self._argument(item) for item in parts[0]]
        return {"list": list, "tuple": tuple, "slice": lambda items: slice(*items)}[kind](items)

    def _describe(self, node, result):
        if self.hints is not None:
            node.meta["example_value"] = self._example(result)

    def _example(self, result):
        """A tensor without data, like the result."""
        if isinstance(result, list):
            return tuple(self._example(item) for item in result)
        if not isinstance(result, tuple):
            return None
        _, sizes, strides, dtype, device, requires_grad = result
        known = [[self.number(dim, self.hints) for dim in dims] for dims in (sizes, strides)]
        made = torch.empty_strided(*known, dtype=dtype, device="meta")
        return made.requires_grad_(requires_grad)


def _inputs_in(given):
    """(number, type) of each input that is named in a description's arguments."""
    return {given[1]: given[2] for given in _tagged(given, "input")}.items()


def _symbolic_in(given):
    return [part[1] for part in _tagged(given, "symbolic")]


def _tagged(given, tag):
    if isinstance(given, dict):
        given = list(given.values())
    if not isinstance(given, list | tuple):
        return []
    if isinstance(given, tuple) and given and given[0] == tag:
        inner = _tagged(given[2], "symbolic") if tag == "symbolic" and len(given) > 2 else []
        return [given, *inner]
    return [found for item in given for found in _tagged(item, tag)]


def _stack_trace(stack):
    lines = []
    for file, line, function in stack:
        lines.append(f'  File "{file}", line {line}, in {function}\n')
        if text := linecache.getline(file, line).strip():
            lines.append(f"    {text}\n")
    return "".join(lines)
