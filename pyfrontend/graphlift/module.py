"""Compiled modules: an instance of a subclass of the module's own class that shares the module's `__dict__`.

So isinstance holds, attributes, parameters, hooks and modes are one and the same for both, and state_dict keys have no
prefix. What is compiled is kept in a slot of the new instance: never in the shared dict, never in a table of this file.
"""

import copy
import sys
import types
import weakref

import torch
from torch.nn.modules import module as torch_module

from . import _C
from .function import compile_function

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = tuple(getattr(torch_module, f"_global{name}") for name in _HOOKS)
# graphlift.encoders stands in its place, where it is called.
_SUBSTITUTED = torch.nn.TransformerEncoder.forward
_FUNCTIONS = (types.FunctionType, _C.CompiledFunction)


class SharedModule:
    """First base of the classes made here: copies and pickles as the plain module and what is to be made of it."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs):
        """Keeps the module class's own __init_subclass__ (registries and the like) out of this."""

    @property
    def _orig_mod(self):
        """The plain module, under torch.compile's name for it."""
        state = _state(self)
        return _plain(self) if state is None else state.module

    def __copy__(self):
        remake, arguments = _recipe(self)
        return remake(copy.copy(self._orig_mod), *arguments)

    def __deepcopy__(self, memo):
        remake, arguments = _recipe(self)
        return remake(copy.deepcopy(self._orig_mod, memo), *arguments)

    def __reduce_ex__(self, protocol):
        remake, arguments = _recipe(self)
        return remake, (self._orig_mod, *arguments)


class CompiledModule(SharedModule):
    """A module whose call is compiled."""

    __slots__ = ()

    def __call__(self, *args, **kwargs):
        """Calls the compiled form; inside another compiled call the module is captured like any other."""
        state = None if _C.is_capturing() else _state(self)
        if state is None:
            return super().__call__(*args, **kwargs)
        # Parametrizations give the plain module another class, which alone has what `forward` reads then.
        module = self if type(state.module) is self._graphlift_base else state.module
        return state.choose(module)(module, *args, **kwargs)


class _OptimizedAsTorchSays:
    """First base of what a redirected torch.compile returns: programs ask isinstance(model, OptimizedModule), and have
    further methods compiled by `dynamo_ctx`."""

    __slots__ = ()

    @property
    def __class__(self):
        return _optimized_class(type(self))

    def dynamo_ctx(self, function):
        """The function, compiled as the module is."""
        from .compiler import compile_callable

        return compile_callable(function, _state(self).config)


class OptimizedModule(_OptimizedAsTorchSays, CompiledModule):
    """A compiled module that programs take for one of torch's compiler."""

    __slots__ = ()


class DisabledModule(SharedModule):
    """A module that is never captured: its call is a graph break."""

    __slots__ = ()

    def __call__(self, *args, **kwargs):
        """Calls the plain form."""
        state = _state(self)
        if state is not None and type(state.module) is not self._graphlift_base:
            return state.module(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    __call__._graphlift_disable = True


class _State:
    """What a shared module has of its own: the plain module, the configuration, the compiled callables.

    The root of a capture is `forward` itself wherever nothing else would run around it: a break in it is then one at
    the root, behind which capture goes on. Both are looked up in the class at each call, as eager does: `compiled`
    remembers what was made of the functions last found there.
    """

    __slots__ = ("compiled", "config", "module")

    def __init__(self, module, config):
        self.module, self.config = module, config
        self.compiled = {"forward": (None, None), "call": (None, None)}

    def choose(self, module):
        """The compiled callable for a call of the module, or of the one that shares its state, as it is now."""
        cls = type(self.module)
        call = cls.__call__
        if call is torch.nn.Module.__call__:
            forward = getattr(cls, "forward", None)
            if isinstance(forward, _FUNCTIONS) and forward is not _SUBSTITUTED and calls_forward_only(module):
                return self.of("forward", forward)
            call = torch.nn.Module._call_impl  # with all hooks around `forward`
        return self.of("call", call)

    def of(self, name, function):
        """The compiled form of the function that the class has under a name now."""
        known, compiled = self.compiled[name]
        if known is not function:
            compiled = compile_function(function, self.config)
            self.compiled[name] = function, compiled
        return compiled


def compile_module(module, config, kind=CompiledModule):
    """A compiled drop-in for the module."""
    return _share(kind, module, config)


def disable_module(module):
    """A drop-in for the module that is never captured."""
    return _share(DisabledModule, module, None)


class CompiledCall:
    """Compiles a module in place: nn.Module.__call__ runs what the attribute `_compiled_call_impl` holds."""

    __slots__ = ("_module", "_state")

    def __init__(self, module, config):
        self._module, self._state = module, _State(module, config)

    def __call__(self, *args, **kwargs):
        """Calls the compiled form; inside another compiled call the module is captured like any other."""
        if _C.is_capturing():
            return self._module._call_impl(*args, **kwargs)
        return self._state.choose(self._module)(self._module, *args, **kwargs)


def calls_forward_only(module) -> bool:
    """Calling the module is calling its class's `forward`: no hook, no `forward` of its own, no tracer."""
    own = module.__dict__
    for name in _HOOKS:
        if own.get(name):
            return False
    for hooks in _GLOBAL_HOOKS:
        if hooks:
            return False
    return "forward" not in own and not torch._C._get_tracing_state()


def _optimized_class(cls):
    """A class like `cls` that derives from torch's OptimizedModule as well; it has no instances."""
    found = cls.__dict__.get("_graphlift_optimized")
    if found is None:
        content = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__}
        found = type(cls)(cls.__name__, (cls, sys.modules["torch._dynamo.eval_frame"].OptimizedModule), content)
        cls._graphlift_optimized = found
    return found


# Module class -> {kind -> weak reference to the class made of it}. Weak on both sides: a class of a function can go.
_classes = weakref.WeakKeyDictionary()


def _shared_class(kind, base):
    made = _classes.setdefault(base, {})
    shared = made[kind]() if kind in made else None
    if shared is None:
        content = {"__slots__": ("_graphlift_state",), "_graphlift_base": base, "__doc__": base.__doc__}
        content |= {"__module__": base.__module__, "__qualname__": base.__qualname__}
        shared = type(base)(base.__name__, (kind, base), content)
        made[kind] = weakref.ref(shared)
    return shared


def _share(kind, module, config):
    shared = object.__new__(_shared_class(kind, type(module)))
    object.__setattr__(shared, "__dict__", module.__dict__)
    object.__setattr__(shared, "_graphlift_state", _State(module, config))
    return shared


def _state(module):
    """None for an instance that the module's own code made with type(self)(...)."""
    try:
        return object.__getattribute__(module, "_graphlift_state")
    except AttributeError:
        return None


def _plain(module):
    plain = object.__new__(type(module)._graphlift_base)
    object.__setattr__(plain, "__dict__", module.__dict__)
    return plain


def _same(module):
    return module


def _recipe(module):
    state = _state(module)
    if state is None:
        return _same, ()
    if not isinstance(module, CompiledModule):
        return disable_module, ()
    return compile_module, (state.config, next(k for k in (OptimizedModule, CompiledModule) if isinstance(module, k)))
