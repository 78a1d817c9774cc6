"""Backends by the names that torch._dynamo's registry lists ("inductor", ...), as callables.

Owns the look-up, which imports torch._dynamo: nothing comes here but a backend's name that graphlift does not know.
"""

import functools


def names() -> list[str]:
    """What the registry lists, experimental and debugging backends too."""
    from torch._dynamo.backends.registry import list_backends

    return list_backends(exclude_tags=())


@functools.cache
def backend(name: str):
    """The callable (torch.fx.GraphModule, example inputs) -> callable; one object a name."""

    def compile_registered(module, inputs):
        from torch._dynamo.backends.registry import lookup_backend

        return lookup_backend(name)(module, inputs)

    compile_registered.static_sizes = True  # sizes of the examples are taken as fixed
    compile_registered.__name__ = compile_registered.__qualname__ = name
    return compile_registered
