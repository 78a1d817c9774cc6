"""graphlift compiles unmodified PyTorch programs.

    import graphlift

    @graphlift.compile
    def step(x, w):
        return torch.nn.functional.gelu(x @ w)

    model = graphlift.compile(model)

This package is the user's side: arguments, wrappers, reports and logs. Capturing, guarding and running happen in C++
(graphlift._C).
"""

import torch  # noqa: F401  (its libraries have to be loaded before graphlift._C is)

from . import logs
from .compiler import compile
from .control import (
    counters,
    disable,
    graph_break,
    graph_count,
    is_compiling,
    mark_dynamic,
    mark_static,
    maybe_mark_dynamic,
    reset,
)
from .errors import GraphBreakError, GraphliftWarning, InternalError
from .logs import set_logs
from .options import list_backends, list_modes, list_options, list_passes
from .redirect import install, uninstall
from .report import explain

__version__ = "0.1.0"

__all__ = [
    "GraphBreakError",
    "GraphliftWarning",
    "InternalError",
    "compile",
    "counters",
    "disable",
    "explain",
    "graph_break",
    "graph_count",
    "install",
    "is_compiling",
    "list_backends",
    "list_modes",
    "list_options",
    "list_passes",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "reset",
    "set_logs",
    "uninstall",
]

logs.start()
