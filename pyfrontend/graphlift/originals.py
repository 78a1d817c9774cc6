"""Functions of torch as other objects, in whose place no substitute is captured.

Must not know what stands in for them.
"""

import types


def copied(function, **names):
    """The same function as another object; global names that are given here mean something else in it."""
    seen = {**function.__globals__, **names} if names else function.__globals__
    made = types.FunctionType(function.__code__, seen, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made
