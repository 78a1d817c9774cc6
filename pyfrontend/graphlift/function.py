"""Compiled Python functions: C++ callables that look like the function they stand for."""

import copyreg
import functools

from . import _C

# Attributes of a function that functools.update_wrapper leaves out.
_FUNCTION_ATTRIBUTES = ("__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__")


def compile_function(function, config):
    """Compiles a Python function, or a compiled one anew; every result owns its regions."""
    if isinstance(function, _C.CompiledFunction):
        function = function.__wrapped__
    compiled = functools.update_wrapper(_C.compile_function(function, config), function)
    for name in _FUNCTION_ATTRIBUTES:
        if not hasattr(compiled, name) and hasattr(function, name):
            setattr(compiled, name, getattr(function, name))
    return compiled


# As functions are pickled and copied: one at the top of a module is found again by its name.
copyreg.pickle(_C.CompiledFunction, lambda compiled: compiled.__qualname__)
