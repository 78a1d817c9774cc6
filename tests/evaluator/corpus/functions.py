"""Definitions, argument binding, closures, decorators, recursion, lambdas."""
# ruff: noqa: E742, F401, F821

import functools
import sys


def case_defaults_and_kwonly():
    def f(a, b=2, *args, c, d=4, **kw):
        return a, b, args, c, d, kw

    return f(1, c=3), f(1, 2, 3, 4, c=5, e=6), f(*[1, 2], **{"c": 3, "d": 9, "z": 1}), f(1, c=3, b=7)


def case_positional_only():
    def f(a, b, /, c, *, d):
        return a + b + c + d

    return f(1, 2, 3, d=4), f(1, 2, c=3, d=4)


def case_missing_argument():
    def f(a, b, *, c):
        return a

    out = []
    for call in (
        lambda: f(1),
        lambda: f(1, 2),
        lambda: f(1, 2, 3, c=1),
        lambda: f(1, 2, c=1, e=2),
        lambda: f(1, 2, a=3, c=2),
    ):
        try:
            call()
        except TypeError as e:
            out.append(str(e))
    return out


def case_mutable_default():
    def f(x, acc=[]):  # noqa: B006
        acc.append(x)
        return acc

    f(1)
    return f(2), f.__defaults__


def case_default_evaluated_once():
    n = 0

    def make():
        nonlocal n
        n += 1
        return n

    def f(a=make(), *, b=make()):
        return a, b

    return f(), f(), n, f.__kwdefaults__


def case_annotations():
    def f(a: int, b: "str" = "x", *args: float, c: list[int] = (), **kw: dict) -> None:
        x: int = 5
        return x

    return f(1), f.__annotations__


def case_closure_counter():
    def counter():
        n = 0

        def up(by=1):
            nonlocal n
            n += by
            return n

        return up, lambda: n

    up, get = counter()
    up()
    up(5)
    return get(), up.__closure__[0].cell_contents


def case_closure_late_binding():
    fs = [lambda: i for i in range(3)]
    gs = [lambda i=i: i for i in range(3)]
    return [f() for f in fs], [g() for g in gs]


def case_closure_three_levels():
    def a(x):
        def b(y):
            def c(z):
                nonlocal x
                x += 1
                return x, y, z

            return c

        return b

    c = a(1)(2)
    return c(3), c(4)


def case_closure_over_argument():
    def f(x, *args, **kw):
        def g():
            return x, args, kw

        x += 1
        return g()

    return f(1, 2, k=3)


def case_unbound_free_variable():
    def f():
        def g():
            return value

        if False:
            value = 1
        return g()

    return f()


def case_deleted_cell():
    x = 1

    def g():
        return x

    print(g())
    del x
    try:
        g()
    except NameError as e:
        print(type(e).__name__, e)
    try:
        del x
    except UnboundLocalError as e:
        print(e)
    x = 3
    return g()


def case_nonlocal_delete():
    def f():
        x = 1

        def g():
            nonlocal x
            del x

        g()
        return x

    return f()


def case_recursion():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib(12)


def case_mutual_recursion():
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    return even(30), odd(7)


def case_recursion_error():
    def f(n):
        return f(n + 1)

    try:
        f(0)
    except RecursionError as e:
        return str(e)


def case_decorators():
    def twice(f):
        @functools.wraps(f)
        def g(*a, **k):
            return f(*a, **k), f(*a, **k)

        return g

    def tag(name):
        def deco(f):
            f.tag = name
            return f

        return deco

    @tag("t")
    @twice
    def f(x):
        """Doc."""
        return x + 1

    return f(1), f.tag, f.__name__, f.__doc__


def case_lru_cache():
    calls = []

    @functools.lru_cache(maxsize=None)
    def f(x):
        calls.append(x)
        return x * 2

    return f(1), f(1), f(2), calls


def case_partial_and_reduce():
    def add(a, b, c=0):
        return a + b + c

    return (
        functools.partial(add, 1, c=5)(2),
        functools.reduce(add, [1, 2, 3]),
        functools.reduce(lambda a, b: a * b, range(1, 6)),
    )


def case_callbacks_from_c():
    data = ["bb", "a", "ccc"]
    return (
        sorted(data, key=lambda s: -len(s)),
        list(map(str.upper, data)),
        list(filter(lambda s: len(s) > 1, data)),
        max(data, key=len),
        min(data, key=lambda s: s[0]),
        list(map(lambda a, b: a + b, data, data)),
    )


def case_callback_raises():
    def key(x):
        if x == 2:
            raise KeyError("two")
        return x

    return sorted([3, 2, 1], key=key)


def case_star_calls():
    def f(*a, **k):
        return a, sorted(k.items())

    t, d = (1, 2), {"x": 1}
    return (
        f(*t),
        f(*t, *t),
        f(0, *t, 9),
        f(**d),
        f(**d, y=2),
        f(*t, **d, z=3),
        f(*[], **{}),
        f(*range(3)),
        f(*"ab", *{1: 2}),
        f(a=1, **{"b": 2}, **{"c": 3}),
    )


def case_star_call_duplicate():
    def f(**k):
        return k

    return f(a=1, **{"a": 2})


def case_star_call_duplicate_two_dicts():
    return dict(**{"a": 1}, **{"a": 2})


def case_star_call_not_iterable():
    return print(*5)


def case_star_call_none():
    return print(1, *None)


def case_star_call_not_mapping():
    return dict(**5)


def case_star_call_mapping_object():
    class M:
        def keys(self):
            print("keys")
            return ["a", "b"]

        def __getitem__(self, k):
            print("get", k)
            return k * 2

    return dict(**M()), (lambda **k: k)(x=1, **M())


def case_star_call_bad_keys():
    return dict(**{1: 2})


def case_not_callable():
    x = 5
    return x(1)


def case_many_arguments():
    def f(a, b, c, d, e, f, g, h, i, j, k=0, l=1, m=2, n=3):
        return a + b + c + d + e + f + g + h + i + j + k + l + m + n

    return f(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, m=20, k=30, n=40)


def case_function_attributes():
    def f():
        return f.count

    f.count = 3
    return f(), f.__qualname__, f.__module__.rsplit(".", 1)[-1], f.__code__.co_name


def case_lambda_defaults():
    return (lambda a, *b, c=3, **d: (a, b, c, d))(1, 2, c=4, e=5)


def case_locals_in_function():
    a = 1
    b = [2]

    def g():
        c = b
        return sorted(locals())

    return sorted(locals()), locals()["a"], g()


def case_exec_eval():
    ns = {}
    exec("x = 3\ndef f(y):\n    return x + y\nz = [i*x for i in range(3)]", ns)
    a = 10
    return ns["f"](4), ns["z"], eval("a + 1"), eval("a + b", {"a": 1}, {"b": 2})


def case_frames_seen():
    def f():
        frame = sys._getframe()
        return frame.f_lineno - frame.f_code.co_firstlineno, frame.f_back.f_code.co_name, sorted(frame.f_locals)

    return f()


def case_frame_locals_of_caller():
    def g():
        return dict(sys._getframe(1).f_locals)

    def f(a, b=2):
        c = a + b
        return g(), c

    return f(1)


def case_call_bound_methods():
    class A:
        def m(self, x, *, y=0):
            return x + y

        @classmethod
        def c(cls, x):
            return cls.__name__, x

        @staticmethod
        def s(x):
            return x

    a = A()
    bound = a.m
    return bound(1, y=2), a.m(3), A.m(a, 4), a.c(5), A.c(6), a.s(7), A.s(8), [bound(x) for x in range(3)]


def case_callable_instance():
    class C:
        def __call__(self, *a, **k):
            return a, k

    return C()(1, 2, z=3), list(map(C(), [1]))


def case_builtin_calls():
    return (
        len([1, 2]),
        isinstance(1, (int, str)),
        max(1, 2, key=lambda v: -v),
        sum([[1], [2]], []),
        print("x", end="|"),
        int("12", base=5),
        dict(a=1),
        getattr(1, "nope", "d"),
        divmod(7, 3),
        pow(2, 5, 7),
        round(2.567, ndigits=1),
    )


def case_extended_arg_constants():
    f = eval("lambda: [" + ",".join(f"{i}.5" for i in range(300)) + "][-1]")
    g = {}
    exec(
        "def g():\n"
        + "\n".join(f"    v{i} = {i} + {i}.25" for i in range(300))
        + "\n    return v299 + v3, len(locals())",
        g,
    )
    return f(), g["g"]()


def case_generic_alias_and_union():
    return list[int], dict[str, int] | None, int | str


def case_docstring_and_global():
    global _made_here

    def f():
        global _made_here
        _made_here = 5

    f()
    r = _made_here
    del _made_here
    try:
        return r, _made_here
    except NameError as e:
        return r, str(e), e.name


def case_delete_missing_global():
    global _never_made
    del _never_made


def case_missing_global():
    return _nobody_defines_this
