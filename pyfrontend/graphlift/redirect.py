"""`install`: torch.compile and nn.Module.compile mean graphlift from then on, for programs that can't be changed.

Owns the translation of torch.compile's arguments. Must not import torch._dynamo.
"""

import functools
import sys

import torch

from . import logs
from .compiler import compile
from .control import reset
from .module import CompiledCall, CompiledModule, OptimizedModule, compile_module
from .options import OPTIONS, list_backends, make_config

# torch's backends that stand for "compile it": graphlift's default backend does.
_TORCH_BACKENDS = ("inductor", "eager", "aot_eager", "aot_eager_decomp_partition", "aot_ts", "cudagraphs")
_saved = {}


def install() -> None:
    """Redirects torch.compile, torch.compiler.reset and nn.Module.compile to graphlift."""
    if _saved:
        return
    places = (
        (torch, "compile", _torch_compile),
        (torch.compiler, "reset", reset),
        (torch.nn.Module, "compile", _module_compile),
    )
    for owner, name, replacement in places:
        _saved[owner, name] = getattr(owner, name)
        setattr(owner, name, replacement)


def uninstall() -> None:
    """Takes install() back."""
    while _saved:
        (owner, name), original = _saved.popitem()
        setattr(owner, name, original)


def _torch_compile(model=None, *, backend="inductor", options=None, **arguments):
    """torch.compile, run by graphlift."""
    if _is_foreign(backend):
        logs.emit("perf_hints", f"torch.compile with backend {backend!r} is left to torch")
        return _saved[torch, "compile"](model, backend=backend, options=options, **arguments)
    translated = _translate(backend, options, arguments)
    # Programs that know torch's compiler ask for its class of compiled modules. Without it nobody can.
    if isinstance(model, torch.nn.Module) and "torch._dynamo.eval_frame" in sys.modules:
        compiled = compile(model, **translated)
        if isinstance(compiled, CompiledModule) and compiled is not model:
            return compile_module(compiled._orig_mod, compiled._graphlift_state.config, OptimizedModule)
        return compiled
    return compile(model, **translated)


def _is_foreign(backend):
    """A backend of the program's own, or one registered with torch: torch.compile knows how to feed it."""
    return backend is not None and backend not in _TORCH_BACKENDS and backend not in list_backends()


def _translate(backend, options, arguments):
    kept = {name: value for name, value in (options or {}).items() if name in OPTIONS}
    if arguments.get("recompile_limit") is not None:
        kept["recompile_limit"] = arguments["recompile_limit"]
    ignored = sorted(set(options or ()) - set(OPTIONS))
    if ignored:
        logs.emit("perf_hints", f"torch.compile's options {', '.join(ignored)} have no meaning here")
    known = ("fullgraph", "dynamic", "mode", "disable")
    translated = {name: arguments[name] for name in known if name in arguments}
    return translated | {"backend": None if backend in _TORCH_BACKENDS else backend, "options": kept}


@functools.wraps(torch.nn.Module.compile)
def _module_compile(self, **kwargs):
    backend = kwargs.pop("backend", "inductor")
    if _is_foreign(backend):
        return _saved[torch.nn.Module, "compile"](self, backend=backend, **kwargs)
    arguments = _translate(backend, kwargs.pop("options", None), kwargs)
    disabled = arguments.pop("disable", False)
    config = make_config(**{"fullgraph": False, "dynamic": None, "mode": None} | arguments)
    # Copies and pickles of the module leave this attribute out, as with torch's own.
    self._compiled_call_impl = None if disabled else CompiledCall(self, config)
