"""Globals, builtins, imports, del, star imports, module attributes."""
# ruff: noqa: E742, F401, F821

import builtins
import sys
import types

counter = 0


def case_global_store_and_load():
    global counter
    counter = 5
    counter += 1
    r = counter
    counter = 0
    return r, counter


def case_builtin_shadowed_by_global():
    ns = {"len": lambda x: "mine"}
    exec("def f():\n    return len([1])\n", ns)
    r = ns["f"]()
    del ns["len"]
    return r, ns["f"]()


def case_builtins_replaced():
    ns = {"__builtins__": {"len": lambda x: "custom"}}
    exec("def f():\n    return len([1])\ndef g():\n    return print\n", ns)
    try:
        return ns["f"](), ns["g"]()
    except NameError as e:
        return ns["f"](), str(e)


def case_builtins_changed():
    builtins._evaluator_probe = 7
    try:
        return _evaluator_probe  # noqa: F821
    finally:
        del builtins._evaluator_probe


def case_imports():
    import collections
    import os.path
    import os.path as p
    from collections import OrderedDict as OD
    from collections import deque
    from math import (
        pi,
        tau,
    )

    return os.path is p, OD.__name__, deque.__name__, round(pi, 3), tau > 6, collections.deque is deque


def case_import_star_in_exec():
    m = types.ModuleType("star_module")
    m.a, m._b, m.c = 1, 2, 3
    sys.modules["star_module"] = m
    try:
        ns = {}
        exec("from star_module import *", ns)
        m.__all__ = ["_b", "a"]
        ns2 = {}
        exec("from star_module import *", ns2)
        m.__all__ = ["nope"]
        try:
            exec("from star_module import *", {})
        except AttributeError as e:
            err = str(e)
        m.__all__ = [5]
        try:
            exec("from star_module import *", {})
        except TypeError as e:
            err2 = str(e)
        return sorted(k for k in ns if len(k) < 3), sorted(k for k in ns2 if len(k) < 3), err, err2
    finally:
        del sys.modules["star_module"]


def case_import_submodule_by_from():
    from importlib import util

    return util.__name__


def case_import_from_sys_modules_fallback():
    pkg = types.ModuleType("fake_pkg")
    pkg.__path__ = []
    sub = types.ModuleType("fake_pkg.sub")
    sys.modules["fake_pkg"], sys.modules["fake_pkg.sub"] = pkg, sub
    try:
        from fake_pkg import sub as s

        return s is sub
    finally:
        del sys.modules["fake_pkg"], sys.modules["fake_pkg.sub"]


def case_import_from_unknown_location():
    m = types.ModuleType("nowhere_module")
    sys.modules["nowhere_module"] = m
    try:
        pass
    finally:
        del sys.modules["nowhere_module"]


def case_import_custom_function():
    def my_import(name, globals=None, locals=None, fromlist=(), level=0):
        print("import", name, fromlist, level, locals is None)
        return types.SimpleNamespace(x=1, name=name)

    ns = {"__builtins__": {"__import__": my_import}}
    exec("import a.b\nfrom c import x\ndef f():\n    import d as e\n    return e.name\nr = f()", ns)
    return ns["r"], ns["x"], ns["a"].name


def case_import_no_function():
    exec("import os", {"__builtins__": {}})


def case_relative_import_outside_package():
    exec("from . import x", {"__name__": "top"})


def case_module_exec():
    ns = {"__name__": "made"}
    code = """
x: int = 1
y: 'str'
class C:
    z: float = 2.0
def f(a: x) -> y.__class__ if False else int:
    return a + x
total = 0
for i in range(5):
    if i == 3:
        break
    total += i
else:
    total = -1
try:
    del total_missing
except NameError as e:
    message = str(e)
del i
"""
    exec(code, ns)
    return ns["__annotations__"] if "__annotations__" in ns else None, ns["total"], ns["message"], ns["f"](2), "i" in ns


def case_exec_with_locals_mapping():
    class M(dict):
        def __missing__(self, k):
            print("missing", k)
            raise KeyError(k)

        def __getitem__(self, k):
            print("get", k)
            return super().__getitem__(k)

        def __setitem__(self, k, v):
            print("set", k)
            super().__setitem__(k, v)

        def __delitem__(self, k):
            print("del", k)
            super().__delitem__(k)

    m = M()
    exec("a = 1\nb = a + len([a])\ndel a\nc = b", {}, m)
    return dict(m)


def case_mapping_missing_name():
    exec("x = undefined_here", {}, {})


def case_print_expression_single():
    code = compile("1 + 1\n'x'\nNone", "<s>", "single") if False else compile("1 + 1", "<s>", "single")
    exec(code, {})
    exec(compile("for i in range(3): i", "<s>", "single"), {})


def case_vars_dir_globals():
    class A:
        x = 1

    y = 2
    return sorted(vars()), "x" in dir(A), "counter" in globals(), sorted(dir())


def case_name_error_suggestion_name():
    try:
        undefined_variable_q
    except NameError as e:
        return e.name, str(e)


def case_nested_exec_functions():
    ns = {}
    exec("def outer(n):\n    def inner(m):\n        return n * m\n    return inner\n", ns)
    return ns["outer"](3)(4)


def case_type_call():
    def init(self, v):
        self.v = v

    A = type("A", (object,), {"__init__": init, "get": lambda self: self.v})
    return A(3).get(), A.__name__


def case_global_in_class_body():
    global _from_class

    class A:
        global _from_class
        _from_class = 9
        b = _from_class

    r = _from_class, A.b, hasattr(A, "_from_class")
    del _from_class
    return r
