"""A stand-in for graphlift._C in Python, for the tests of the user's side: calls are counted and run in eager.

It holds the surface that the package relies on; test_surface.py compares it with the real module.
"""

import functools
import sys
import types
import weakref

GRAPHLIFT_MODULE = "graphlift._C"

_live = weakref.WeakSet()
_state = {"capturing": 0, "sink": None, "logs": "", "events": None, "broken": []}


class CompiledFunction:
    """As the C++ type: a callable over a function, bound like one, with a `__dict__` of its own."""

    def __init__(self, function, config):
        self.__wrapped__ = function
        self._config = config
        self._calls = 0
        _live.add(self)

    def __call__(self, *args, **kwargs):
        self._calls += 1
        if _state["events"] is not None:
            code = self.__wrapped__.__code__
            place = {"file": code.co_filename, "line": code.co_firstlineno}
            _state["events"].append({"kind": "graph", "forward": "graph()", "calls": 1, "guards": ["g"], **place})
        return self.__wrapped__(*args, **kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)


def compile_function(function, config):
    assert isinstance(function, types.FunctionType), function
    assert set(config) == {"fullgraph", "dynamic", "backend", "mode", "options"}, config
    return CompiledFunction(function, config)


def reset():
    for compiled in _live:
        compiled._calls = 0


def graph_count():
    return sum(compiled._calls > 0 for compiled in _live)


def passes():
    return {"fusion": "puts calls into shared kernels"}


def counters():
    return {"graphs": graph_count(), "graph_break": {}}


def set_log_sink(sink):
    _state["sink"] = sink


def set_logs(spec):
    _state["logs"] = spec


def log_table():
    names = (
        "graph_breaks",
        "recompiles",
        "guards",
        "graph",
        "graph_code",
        "aot_graphs",
        "output_code",
        "bytecode",
        "perf_hints",
    )
    return dict.fromkeys(names, "words")


def backend_names():
    return ["reference"]


def explain_start():
    _state["events"] = []


def explain_stop():
    events, _state["events"] = _state["events"], None
    return events


def is_capturing():
    return bool(_state["capturing"])


def graph_break(message):
    _state["broken"].append(message)


def install():
    module = types.ModuleType(GRAPHLIFT_MODULE)
    for name, value in globals().items():
        if not name.startswith("__") and not isinstance(value, types.ModuleType):
            setattr(module, name, value)
    module.double = True
    sys.modules[GRAPHLIFT_MODULE] = module
    return module


install = functools.cache(install)
