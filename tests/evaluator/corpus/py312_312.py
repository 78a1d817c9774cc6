"""What 3.12 brought: type parameters, f-strings of any expression, comprehensions in the frame around them."""


def case_generic_function():
    def first[T](xs: list[T]) -> T:
        return xs[0]

    return first([1, 2]), first.__type_params__, first.__annotations__


def case_generic_class():
    class Box[T, *Ts, **P]:
        item: T

        def __init__(self, v: T):
            self.v = v

        def get(self) -> T:
            return self.v

    return Box(3).get(), Box[int, str, [int]].__args__[0], Box.__type_params__


def case_bounds_and_constraints():
    class A[T: int, U: (str, bytes)]:
        pass

    t, u = A.__type_params__
    return t.__bound__, u.__constraints__


def case_type_alias():
    type Pair[T] = tuple[T, T]
    type Rec = list[Rec]
    return Pair.__name__, Pair[int].__args__, Rec.__value__, Pair.__value__


def case_type_parameters_with_closure():
    x = 5

    class C[T]:
        y = x

        def f[S](self, a: S) -> S:
            return (a, x, __class__.__name__)

    return C().f(1), C.y


def case_fstring_nesting():
    d = {"a": 1}
    return f"{d["a"]}", f"{'\n'.join(["x", "y"])}", f"{f"{f"{1 + 1}"}"}", f"{
        d['a']  # a comment
    }"


def case_inlined_comprehension_handlers():
    x = "outer"
    out = []
    for v in (1, 0):
        try:
            out.append([10 / x for x in (2, v)])
        except ZeroDivisionError:
            out.append(x)
    return out, x


def case_inlined_comprehension_cells():
    x = 1

    def f():
        return x

    r = [x for x in range(3)]
    s = [(lambda: x)() for x in range(3)]
    return r, s, f(), x


def case_inlined_nested():
    return [[(i, j, [k for k in range(j)]) for j in range(i)] for i in range(3)]


def case_inlined_in_class():
    class A:
        x = 2
        y = [x for x in range(3)]
        z = {k: v for k, v in {"a": x}.items()}

    return A.x, A.y, A.z


def case_inlined_generator_and_locals():
    def g():
        a = 1
        yield [a + b for b in range(2)]
        yield sorted(k for k in locals())

    return list(g())


def case_override_decorator():
    import typing

    class A:
        def f(self):
            return 1

    class B(A):
        @typing.override
        def f(self):
            return super().f() + 1

    return B().f()
