"""`compile`: chooses, by kind of callable, what the C++ side gets and what the user gets back.

Owns the wrappers of methods, partials and callable objects; functions are in function.py, modules in module.py. Every
compiled callable owns its regions: they go when it goes.
"""

import functools
import types

import torch

from . import _C
from .control import is_disabled
from .function import compile_function
from .module import CompiledModule, compile_module
from .options import make_config

_FUNCTIONS = (types.FunctionType, _C.CompiledFunction)


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, disable=False):
    """Returns a compiled form of a function, method, module, class or other callable; also works as a decorator.

    fullgraph: raise GraphBreakError at the first graph break instead of going on behind it.
    dynamic: True makes sizes and ints symbolic at once, False never; None does when they change between calls.
    backend, mode, options: see list_backends(), list_modes() and list_options(). An unknown one is a ValueError. A
    callable as backend gets each graph as (torch.fx.GraphModule, example inputs) and returns what runs it, under
    autograd: the calls of torch's functions as the program makes them.
    disable: return the callable as it is.
    """
    config = make_config(fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options)
    if model is None:
        return functools.partial(_compile_unless, disable, config=config)
    return _compile_unless(disable, model, config)


def _compile_unless(disable, model, config):
    return model if disable or is_disabled(model) else compile_callable(model, config)


def compile_callable(target, config):
    """`compile` with checked arguments."""
    for kind, handler in _HANDLERS:
        if isinstance(target, kind):
            return handler(target, config)
    if not callable(target):
        raise TypeError(f"compile takes a callable, not {type(target).__name__}")
    if isinstance(type(target).__call__, _FUNCTIONS):
        return CompiledObject(target, config)
    return _compile_builtin(target, config)


class CompiledObject:
    """Stands for a callable object whose `__call__` is compiled; attributes and class are the object's own."""

    __slots__ = ("__weakref__", "__wrapped__", "_call", "_config")

    def __init__(self, wrapped, config):
        call = types.MethodType(compile_function(type(wrapped).__call__, config), wrapped)
        for name, value in (("__wrapped__", wrapped), ("_call", call), ("_config", config)):
            object.__setattr__(self, name, value)

    def __call__(self, *args, **kwargs):
        """Calls the compiled form."""
        return self._call(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.__wrapped__, name)

    def __setattr__(self, name, value):
        setattr(self.__wrapped__, name, value)

    def __delattr__(self, name):
        delattr(self.__wrapped__, name)

    @property
    def __class__(self):
        return type(self.__wrapped__)

    def __reduce_ex__(self, protocol):
        return CompiledObject, (self.__wrapped__, self._config)


def _compile_wrapped(compiled, config):
    return compile_callable(compiled.__wrapped__, config)


def _compile_method(method, config):
    # Built from the unbound function, so that regions do not own the object: it owns them.
    return types.MethodType(compile_callable(method.__func__, config), method.__self__)


def _compile_descriptor(descriptor, config):
    return type(descriptor)(compile_callable(descriptor.__func__, config))


def _compile_partial(partial, config):
    return functools.partial(compile_callable(partial.func, config), *partial.args, **partial.keywords)


def _compile_class(cls, config):
    """Compiles what calling an instance runs, in place: instances made before and later are compiled."""
    name = "forward" if issubclass(cls, torch.nn.Module) else "__call__"
    method = getattr(cls, name, None)
    if not isinstance(method, _FUNCTIONS):
        raise TypeError(f"compile can't compile class {cls.__name__}: it has no method {name} written in Python")
    setattr(cls, name, compile_function(method, config))
    return cls


def _compile_builtin(function, config):
    """A C function gets a Python frame to be captured from."""

    def call(*args, **kwargs):
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = getattr(function, "__name__", type(function).__name__)
    call.__doc__ = getattr(function, "__doc__", None)
    return compile_function(call, config)


# First match wins.
_HANDLERS = (
    (types.FunctionType, compile_function),
    (_C.CompiledFunction, compile_function),
    (CompiledModule, lambda module, config: compile_module(module._orig_mod, config)),
    (torch.jit.ScriptModule, lambda module, config: module),  # torch runs it without Python frames
    (torch.nn.Module, compile_module),
    (types.MethodType, _compile_method),
    ((staticmethod, classmethod), _compile_descriptor),
    (functools.partial, _compile_partial),
    (type, _compile_class),
    (CompiledObject, _compile_wrapped),
)
