"""What `graphlift.compile` accepts: modes, backends, options. A wrong name is answered with the right ones."""

import os
from typing import Any

from . import _C

# What a mode asks for and a backend can't do, `perf_hints` says.
MODES = {
    "default": "balanced",
    "reduce-overhead": "least work on the host: on a GPU, launches are recorded as CUDA graphs and replayed",
    "max-autotune": "as reduce-overhead; on CPU, products are measured while compiling, and what won is kept on disk",
    "max-autotune-no-cudagraphs": "as max-autotune, without CUDA graphs",
}

# Other names of a backend, as torch.compile's users know them.
BACKEND_ALIASES = {"eager": "reference", "aot_eager": "reference"}
DEFAULT_BACKEND = "native"

# name -> (type, default, what it does). Without `skip_passes`, GRAPHLIFT_SKIP_PASSES says the same.
OPTIONS: dict[str, tuple[type, Any, str]] = {
    "recompile_limit": (int, 8, "regions per place in the code before a call runs in eager for good"),
    "recompute": (bool, True, "backward may compute cheap values again instead of saving them"),
    "emulate_precision_casts": (bool, False, "16-bit floats are rounded after each operator, as eager does"),
    "remember_weights": (
        bool,
        False,
        "on CPU, a copy of each weight is kept in the layout that products and convolutions like, and believed while"
        " the weight's memory and version counter are the same; writes that leave the counter (through `.data` or a"
        " tensor given to it, NumPy, storages, another process) are not seen",
    ),
    "graph_level": (
        str,
        "torch",
        'a callable as backend gets the program\'s calls ("torch") or operators ("aten")',
    ),
    "skip_passes": (str, None, 'passes that don\'t run: names of list_passes() with commas between, or "all"'),
}


def list_modes() -> list[str]:
    """The values of `mode`."""
    return list(MODES)


def list_options() -> dict[str, str]:
    """The keys of `options`, each with what it does."""
    return {name: f"{kind.__name__}, default {default}: {text}" for name, (kind, default, text) in OPTIONS.items()}


def list_passes() -> dict[str, str]:
    """What `options={"skip_passes": ...}` may name, each with what it does."""
    return _C.passes()


def list_backends() -> list[str]:
    """The values of `backend` that are graphlift's own; names that torch's registry lists are valid too."""
    return sorted(_C.backend_names())


def make_config(*, fullgraph, dynamic, backend, mode, options) -> dict[str, Any]:
    """Checks compile's arguments and returns the configuration that the C++ side takes."""
    if dynamic not in (None, True, False):
        raise ValueError(f"dynamic={dynamic!r}: valid are None (automatic), True and False")
    if mode is not None and mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}; valid modes: {', '.join(MODES)}")
    return {
        "fullgraph": bool(fullgraph),
        "dynamic": None if dynamic is None else bool(dynamic),
        "backend": _check_backend(backend),
        "mode": mode or "default",
        "options": _check_options(options),
    }


def _skipped(names: str | None) -> list[str]:
    source = "option 'skip_passes'"
    if names is None:
        names, source = os.environ.get("GRAPHLIFT_SKIP_PASSES", ""), "GRAPHLIFT_SKIP_PASSES"
    known = list(list_passes())
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in known and name != "all":
            raise ValueError(f"{source} names no pass {name!r}; valid are all, {', '.join(known)}")
    return known if "all" in wanted else wanted


def _check_backend(backend):
    if backend is None:
        return DEFAULT_BACKEND
    if callable(backend):
        return backend
    known = list_backends()
    name = BACKEND_ALIASES.get(backend, backend) if isinstance(backend, str) else None
    if name in known:
        return name
    from . import registry

    others = registry.names()
    if backend in others:
        return registry.backend(backend)
    valid = sorted({*known, *BACKEND_ALIASES, *others})
    raise ValueError(f"unknown backend {backend!r}; valid backends: {', '.join(valid)}, or a callable")


def _check_options(options) -> dict[str, Any]:
    checked = {name: default for name, (_, default, _) in OPTIONS.items()}
    for name, value in (options or {}).items():
        if name not in OPTIONS:
            raise ValueError(f"unknown option {name!r}; valid options: {', '.join(OPTIONS)}")
        kind = OPTIONS[name][0]
        if type(value) is not kind or (kind is int and value < 1):
            wanted = "a positive int" if kind is int else f"a {kind.__name__}"
            raise ValueError(f"option {name!r} is {wanted}, not {value!r}")
        checked[name] = value
    if checked["graph_level"] not in ("torch", "aten"):
        raise ValueError(f"option 'graph_level' is 'torch' or 'aten', not {checked['graph_level']!r}")
    checked["skip_passes"] = _skipped(checked["skip_passes"])
    return checked
