"""Class statements, scopes of class bodies, metaclasses."""
# ruff: noqa: E742, F401, F821

import abc
import collections


def case_simple_class():
    class A:
        """Doc of A."""

        x = 1
        y = x + 1
        z: int = 3
        w: "str"

        def __init__(self, v=0):
            self.v = v

        def get(self):
            return self.v, self.x

    a = A(5)
    a.x = 9
    return a.get(), A.y, A.__doc__, A.__annotations__, A.__qualname__, A.__module__.rsplit(".", 1)[-1]


def case_class_scope_names():
    x = "outer"

    class A:
        y = x
        x = "inner"
        z = x
        f = lambda self: x  # noqa: E731
        w = [x for _ in range(2)]

    return A.y, A.z, A().f(), A.w


def case_class_scope_global_lookup():
    class A:
        print = print
        size = len("abc")
        if size > 2:
            big = True
        for i in range(3):
            pass
        try:
            missing
        except NameError as e:
            why = str(e)
        del size

    return A.big, A.i, A.why, hasattr(A, "size")


def case_class_delete_missing():
    class A:
        del nothing


def case_class_deref():
    x = 1

    class A:
        if x:
            x = 2
        y = x

    return A.y, A.x, x


def case_class_free_variable_unbound():
    def f():
        class A:
            y = later

        later = 1
        return A

    return f()


def case_class_cell():
    class A:
        def me(self):
            return __class__

    class B(A):
        pass

    return B().me() is A


def case_metaclass():
    class M(type):
        def __prepare__(name, bases, **kw):
            print("prepare", name, kw)
            return collections.OrderedDict(pre=1)

        def __new__(mcs, name, bases, ns, **kw):
            print("new", name, sorted(k for k in ns if not k.startswith("__")), kw)
            return super().__new__(mcs, name, bases, dict(ns))

        def __init__(cls, name, bases, ns, **kw):
            super().__init__(name, bases, ns)

        def __call__(cls, *a):
            print("call", a)
            return super().__call__(*a)

        def __instancecheck__(cls, o):
            return o == 5

    class A(metaclass=M, key=3):
        a = 1

        def __init__(self, x):
            self.x = x

    class B(A):
        pass

    return A(2).x, B(3).x, isinstance(5, A), A.pre


def case_init_subclass():
    class A:
        seen = []

        def __init_subclass__(cls, /, tag=None, **kw):
            super().__init_subclass__(**kw)
            cls.seen.append((cls.__name__, tag))

    class B(A, tag=1):
        pass

    class C(B):
        pass

    return A.seen


def case_new_and_init():
    class A:
        def __new__(cls, *a):
            o = super().__new__(cls)
            o.made = a
            return o

        def __init__(self, *a):
            self.args = a

    class T(tuple):
        def __new__(cls, *a):
            return super().__new__(cls, a)

    a = A(1, 2)
    return a.made, a.args, T(1, 2)


def case_class_decorator_and_bases():
    def deco(cls):
        cls.extra = 1
        return cls

    bases = (dict, abc.ABC)

    @deco
    class A(*bases, **{"metaclass": abc.ABCMeta}):
        pass

    return A.extra, A(x=1), A.__mro__[1].__name__


def case_mro_entries():
    class P:
        def __mro_entries__(self, bases):
            print("entries", len(bases))
            return (list,)

    class A(P()):
        pass

    return A.__bases__, len(A.__orig_bases__)


def case_class_body_raises():
    class A:
        x = 1
        y = 1 / 0


def case_build_class_bad_base():
    class A(5):
        pass


def case_nested_classes():
    class A:
        class B:
            class C:
                v = 1

            def f(self):
                return self.C.v

        def g(self):
            return A.B().f()

    return A().g(), A.B.C.__qualname__


def case_del_method():
    class A:
        def __init__(self, n):
            self.n = n

        def __del__(self):
            print("gone", self.n)

    a = A(1)
    a = A(2)
    [A(3)]
    b = a
    del a
    print("still")
    del b
    print("end")


def case_custom_exceptions_and_repr():
    class E(Exception):
        def __init__(self, a):
            super().__init__(a, "more")
            self.a = a

        def __str__(self):
            return f"E<{self.a}>"

    raise E(3)
