"""Backends that a program brings along: a graph becomes a torch.fx.GraphModule, the backend's callable runs it.

Imported when a callable was given as `backend`, and then alone: torch.fx is heavy. The module computes what the region
computes, at the level of aten: functional, without autograd, parameters among its inputs. A training region has two of
them, forward and backward.
"""

import ast
import operator
import warnings

import torch
from torch import fx

_INT_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


# Operators that take a Python number where their schema says Tensor.
_NUMBERS_AS_TENSORS = {
    *("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide"),
    *("copy", "_to_copy", "_conj"),
}


class Program:
    """One graph. The backend is asked when it runs first, with the inputs of that call as examples."""

    def __init__(self, backend, description, constants):
        self._asking = (backend, description, constants)
        self._ready = None  # what runs it, and which symbols it takes
        self._needed = [output is not None for output in description[1]]

    def __call__(self, inputs, symbols):
        """The graph's outputs; None stands for an output that is not asked for."""
        run, used = self._ready or self._ask(inputs, symbols)
        return checked_results(run(*(symbols[i] for i in used), *inputs), self._needed)

    def _ask(self, inputs, symbols):
        asking = self._asking
        if asking is None:  # another thread was faster
            return self._ready
        backend, description, constants = asking
        module, used = graph_module(*description, constants)
        numbers = [symbols[i] for i in used]
        run = backend(module, numbers + list(inputs))
        if not callable(run):
            raise TypeError(f"a custom backend returned a {type(run).__name__}, which is not callable")
        if numbers and getattr(backend, "static_sizes", False):
            run = _for_each_sizes(backend, description, constants, tuple(numbers), run)
        self._ready = (run, used)
        self._asking = None
        return self._ready


def _for_each_sizes(backend, description, constants, numbers, run):
    """What runs the graph where the backend compiles for the sizes of its examples alone."""
    ready = {numbers: run}

    def choose(*inputs):
        key = inputs[: len(numbers)]
        if key not in ready:
            ready[key] = backend(graph_module(*description, constants)[0], list(inputs))
        return ready[key](*inputs)

    return choose


def checked_results(results, needed):
    """A graph's outputs as its caller gets them; None for those that are not needed."""
    if not isinstance(results, list | tuple) or len(results) != len(needed):
        kind = f"{len(results)} results" if isinstance(results, list | tuple) else f"a {type(results).__name__}"
        raise TypeError(f"a custom backend's callable returned {kind}; the graph has {len(needed)} outputs")
    for result, wanted in zip(results, needed, strict=True):
        if wanted and not isinstance(result, torch.Tensor):
            kind = "None" if result is None else f"a {type(result).__name__}"
            raise TypeError(f"a custom backend's callable returned {kind} for an output that is a tensor")
    return [result if wanted else None for result, wanted in zip(results, needed, strict=True)]


def graph_module(nodes, outputs, constants):
    """The module, and the numbers of the symbols that are its first inputs."""
    return _Builder(constants).build(nodes, outputs)


class SymbolicInts:
    """Ints over symbols, as text, become nodes of `graph`: + - * // %, min and max. `symbol_nodes`: nodes by name."""

    def symbolic(self, text):
        """The node of such a text."""
        return self._expression(ast.parse(text, mode="eval").body)

    def _expression(self, tree):
        if isinstance(tree, ast.Name):
            return self.symbol_nodes[tree.id]
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, ast.UnaryOp):
            return self.graph.call_function(operator.neg, (self._expression(tree.operand),))
        if isinstance(tree, ast.Call):
            function = {"min": min, "max": max}[tree.func.id]
            return self.graph.call_function(function, tuple(self._expression(arg) for arg in tree.args))
        sides = self._expression(tree.left), self._expression(tree.right)
        return self.graph.call_function(_INT_OPERATORS[type(tree.op)], sides)

    @staticmethod
    def numbers_in(text):
        """Numbers of the symbols in such a text."""
        names = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
        return {int(name[1:]) for name in names if name not in ("min", "max")}

    @staticmethod
    def number(given, values):
        """The int that a size is, with `values` by number for its symbols."""
        if not isinstance(given, tuple):
            return given
        names = {f"s{number}": value for number, value in values.items()}
        return eval(given[1], {"__builtins__": {}, "min": min, "max": max}, names)


class _Builder(SymbolicInts):
    def __init__(self, constants):
        self.root = torch.nn.Module()
        self.constants = constants
        self.graph = fx.Graph()
        self.values = {}  # node id -> fx node
        self.returns = {}  # node id -> how many results its operator has, or None for one tensor
        self.symbol_nodes = {}
        self.numbers = 0

    def build(self, nodes, outputs):
        for number in sorted({number for node in nodes if node[0] == "call" for number in _symbols_in(node[3])}):
            self.symbol_nodes[f"s{number}"] = self.graph.placeholder(f"s{number}", type_expr=int)
        for kind, id, *rest in nodes:
            self.values[id] = getattr(self, kind)(id, *rest)
        self.graph.output(tuple(self.argument(output) for output in outputs))
        with warnings.catch_warnings():  # of generators as attributes
            warnings.simplefilter("ignore")
            self.graph.lint()
        return fx.GraphModule(self.root, self.graph), [int(name[1:]) for name in self.symbol_nodes]

    def input(self, id, name):
        return self.graph.placeholder("".join(c if c.isalnum() else "_" for c in name) or "input")

    def constant(self, id, index):
        name = f"_constant{index}"
        self.root.register_buffer(name, self.constants[index], persistent=False)
        return self.graph.get_attr(name)

    def call(self, id, name, arguments, dtype, where):
        space, _, rest = name.partition("::")
        base, _, overload = rest.rpartition(".")
        target = getattr(getattr(getattr(torch.ops, space), base), overload)
        results = target._schema.returns
        self.returns[id] = None if len(results) == 1 and str(results[0].type) == "Tensor" else results
        if base not in _NUMBERS_AS_TENSORS:
            pairs = zip(target._schema.arguments, arguments, strict=True)
            arguments = [self.number(value, dtype) if _is_number(value, of) else value for of, value in pairs]
        args, kwargs = self.parameters(target._schema.arguments, arguments)
        node = self.graph.call_function(target, tuple(args), kwargs)
        file, line, function = where
        if file:
            node.meta["stack_trace"] = f'  File "{file}", line {line}, in {function}'
        return node

    def number(self, value, dtype):
        """A tensor without dimensions, which promotes as the number does; of the result's dtype where that holds it."""
        wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
        kind = complex if wide and wide.is_complex else float if wide and wide.is_floating_point else None
        name, self.numbers = f"_number{self.numbers}", self.numbers + 1
        self.root.register_buffer(
            name, torch.tensor(value, dtype=wide if type(value) is kind else None), persistent=False
        )
        return self.graph.get_attr(name)

    def parameters(self, schema, arguments):
        """As a program would write the call: what equals its default is left out where it may be."""
        args, kwargs, needed = [], {}, 0
        for parameter, given in zip(schema, arguments, strict=True):
            value = self.argument(given)
            default = parameter.has_default_value() and _same(value, parameter.default_value)
            if parameter.kwarg_only:
                if not default:
                    kwargs[parameter.name] = value
            else:
                args.append(value)
                needed = needed if default else len(args)
        return args[:needed], kwargs

    def argument(self, given):
        if isinstance(given, list):
            return [self.argument(item) for item in given]
        if isinstance(given, torch.Generator):
            return self.generator(given)
        if not isinstance(given, tuple):
            return given  # also a node of a number
        if given[0] == "symbolic":
            return self.symbolic(given[1])
        _, id, index = given
        returns = self.returns.get(id)
        if returns is None:
            return self.values[id]
        if len(returns) > 1 and index >= len(returns) - 1 and "[]" in str(returns[-1].type):
            last = self.graph.call_function(operator.getitem, (self.values[id], len(returns) - 1))
            return self.graph.call_function(operator.getitem, (last, index - len(returns) + 1))
        return self.graph.call_function(operator.getitem, (self.values[id], index))

    def generator(self, given):
        """An attribute of the module; fx knows no other way to name an object."""
        name = next((name for name, known in vars(self.root).items() if known is given), None)
        if name is None:
            name = f"_generator{sum(isinstance(known, torch.Generator) for known in vars(self.root).values())}"
            setattr(self.root, name, given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.graph.get_attr(name)


def _is_number(value, parameter):
    """A number where the schema says Tensor."""
    return type(value) in (bool, int, float, complex) and str(parameter.type) in ("Tensor", "Optional[Tensor]")


def _symbols_in(argument):
    if isinstance(argument, list):
        return {number for item in argument for number in _symbols_in(item)}
    if isinstance(argument, tuple) and argument[0] == "symbolic":
        return SymbolicInts.numbers_in(argument[1])
    return set()


def _same(value, default):
    return type(value) is type(default) and not isinstance(value, fx.Node) and value == default
