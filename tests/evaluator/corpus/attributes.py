"""Attributes, descriptors, slots, super, special methods."""
# ruff: noqa: E742, F401, F821


def case_inheritance_super():
    class A:
        def f(self, x):
            return ["A", x]

    class B(A):
        def f(self, x):
            return ["B", *super().f(x)]

    class C(A):
        def f(self, x):
            return ["C", *super().f(x)]

    class D(B, C):
        def f(self, x):
            return ["D", *super(D, self).f(x)]

    return D().f(1), [k.__name__ for k in D.__mro__]


def case_super_attributes():
    class A:
        attr = 5

        @property
        def p(self):
            return "p"

        @classmethod
        def make(cls):
            return cls.__name__

    class B(A):
        attr = 6

        def go(self):
            return super().attr, super().p, super().make(), super().__init__(), super().__class__

        @classmethod
        def make(cls):
            return "B" + super().make()

    return B().go()[:4], B.make()


def case_super_missing():
    class A:
        def f(self):
            return super().nope

    return A().f()


def case_super_shadowed():
    super = lambda *a: type("S", (), {"f": lambda self: a and "args" or "none"})()  # noqa: A001, E731

    class A:
        def f(self):
            return super().f()

        def g(self):
            return super(A, self).f()

    return A().f(), A().g()


def case_property_setter_deleter():
    class A:
        def __init__(self):
            self._v = 0

        @property
        def v(self):
            print("get")
            return self._v

        @v.setter
        def v(self, x):
            print("set", x)
            self._v = x

        @v.deleter
        def v(self):
            print("del")
            self._v = None

    a = A()
    a.v = 3
    a.v += 4
    r = a.v
    del a.v
    return r, a._v


def case_descriptors():
    class D:
        def __set_name__(self, owner, name):
            print("name", owner.__name__, name)

        def __get__(self, obj, cls):
            return obj is None, cls.__name__

        def __set__(self, obj, value):
            print("set", value)

        def __delete__(self, obj):
            print("delete")

    class A:
        d = D()

    a = A()
    a.d = 1
    del a.d
    return a.d, A.d


def case_getattr_hooks():
    class A:
        def __getattr__(self, name):
            if name.startswith("x"):
                return name * 2
            raise AttributeError(f"no {name}")

        def __setattr__(self, name, value):
            print("set", name, value)
            object.__setattr__(self, name, value)

        def __delattr__(self, name):
            print("del", name)

    a = A()
    a.y = 1
    del a.y
    return a.xa, a.y, a.zz


def case_getattribute():
    class A:
        def __getattribute__(self, name):
            return name if name != "real" else object.__getattribute__(self, "__class__").__name__

        def method(self):
            return 1

    a = A()
    return a.anything, a.real, a.method


def case_attribute_errors():
    class A:
        __slots__ = ("x",)

    out = []
    a = A()
    for f in (lambda: a.x, lambda: a.y, lambda: setattr(a, "y", 1), lambda: A.z, lambda: (1).foo, lambda: None.bar):
        try:
            f()
        except AttributeError as e:
            out.append((str(e), e.name))
    return out


def case_store_attr_error():
    x = 5
    x.attr = 1


def case_delete_attr_error():
    class A:
        pass

    del A().x


def case_slots():
    class A:
        __slots__ = ("a", "b")

        def __init__(self):
            self.a = 1

    a = A()
    a.b = 2
    del a.a
    return a.b, hasattr(a, "a"), hasattr(a, "__dict__")


def case_operators_overloaded():
    class V:
        def __init__(self, v):
            self.v = v

        def __add__(self, o):
            return V(self.v + getattr(o, "v", o))

        def __radd__(self, o):
            return V(o + self.v)

        def __iadd__(self, o):
            self.v += 100
            return self

        def __mul__(self, o):
            return NotImplemented

        def __matmul__(self, o):
            return "matmul"

        def __neg__(self):
            return V(-self.v)

        def __invert__(self):
            return "inv"

        def __pos__(self):
            return "pos"

        def __lt__(self, o):
            return self.v < o.v

        def __eq__(self, o):
            return "eq"

        def __hash__(self):
            return 1

        def __contains__(self, x):
            return x

        def __repr__(self):
            return f"V({self.v})"

    a, b = V(1), V(2)
    c = a
    c += 1
    out = [a + b, 3 + a, a @ b, -a, ~a, +a, a < b, b > a, a == b, a != b, 5 in a, 0 in a, c is a]
    try:
        a * b
    except TypeError as e:
        out.append(str(e))
    return out


def case_dunder_methods():
    class A:
        def __len__(self):
            return 3

        def __getitem__(self, k):
            return k

        def __setitem__(self, k, v):
            print("set", k, v)

        def __delitem__(self, k):
            print("del", k)

        def __call__(self, *a):
            return a

        def __format__(self, spec):
            return f"<{spec}>"

        def __index__(self):
            return 2

        def __int__(self):
            return 7

        def __enter__(self):
            return "entered"

        def __exit__(self, *a):
            print(a)

    a = A()
    a[1] = 2
    a[1:2, ...] = 3
    del a["x"]
    with a as e:
        pass
    return len(a), a[5], a[1:2], a[::3], a[1, 2], a(1), f"{a:z}", [10, 20, 30][a], int(a), e


def case_private_names():
    class A:
        __x = 1

        def f(self):
            return self.__x

        def __g(self):
            return 2

    return A().f(), A()._A__g(), sorted(k for k in vars(A) if k.startswith("_A"))


def case_setattr_loop():
    class O:
        pass

    o = O()
    for i in range(5):
        setattr(o, f"a{i}", i)
        o.last = i
    return vars(o)
