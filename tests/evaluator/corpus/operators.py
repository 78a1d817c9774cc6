"""Every operator, on builtin and user types, in place and not; formatting."""
# ruff: noqa: E742, F401, F821


def case_arithmetic():
    a, b = 17, 5
    return a + b, a - b, a * b, a / b, a // b, a % b, a**b, a << b, a >> b, a & b, a | b, a ^ b, -a, +a, ~a, not a


def case_arithmetic_floats_complex():
    a, b = 7.5, -2.0
    return a + b, a / b, a // b, a % b, a**2, -a, abs(b), 3j * 2, (1 + 2j) ** 2, 1e300 * 1e10


def case_in_place():
    a = 17
    a += 1
    a -= 2
    a *= 3
    a //= 2
    a **= 2
    a %= 1000
    a <<= 3
    a >>= 1
    a |= 5
    a &= 0xFF
    a ^= 3
    b = 10
    b /= 4
    return a, b


def case_in_place_identity():
    l = m = [1]
    l += [2]
    l *= 2
    t = u = (1,)
    t += (2,)
    s = "a"
    r = s
    s += "b"
    return l is m, m, t is u, r, s


def case_matmul():
    class M:
        def __matmul__(self, o):
            return "m"

        def __rmatmul__(self, o):
            return "r"

        def __imatmul__(self, o):
            return "i"

    m = M()
    x = M()
    x @= 3
    return m @ 1, 1 @ m, x


def case_comparisons():
    out = []
    for a, b in ((1, 2), (2, 2), ("a", "b"), ([1], [1, 2]), ((1,), (1,)), (1, 1.0)):
        out.append((a < b, a <= b, a == b, a != b, a > b, a >= b, a is b, a is not b))
    return out


def case_rich_comparison_objects():
    class R:
        def __lt__(self, o):
            return [1]

        def __eq__(self, o):
            return ""

        def __ge__(self, o):
            return NotImplemented

    out = [R() < 1, R() == 1, R() != 1, 1 > R()]
    if R() == 1:
        out.append("true")
    try:
        R() >= 1
    except TypeError as e:
        out.append(str(e))
    return out


def case_nan_identity():
    n = float("nan")
    return n == n, n is n, n in [n], [n] == [n], n != n


def case_type_errors():
    out = []
    for f in (
        lambda: 1 + "a",
        lambda: "a" - 1,
        lambda: [] * {},
        lambda: -"a",
        lambda: ~1.5,
        lambda: +[],
        lambda: 1 < "a",
        lambda: None > 1,
        lambda: 1 @ 2,
        lambda: 5 % None,
        lambda: "%d" % "x",
        lambda: 2 ** "a",
    ):
        try:
            f()
        except TypeError as e:
            out.append(str(e))
    return out


def case_value_errors():
    out = []
    for f in (lambda: 1 / 0, lambda: 1 // 0, lambda: 1 % 0, lambda: 0**-1, lambda: 1 << -1, lambda: 2.0**10000):
        try:
            f()
        except (ArithmeticError, ValueError) as e:
            out.append((type(e).__name__, str(e)))
    return out


def case_in_place_error():
    a = 1
    a += "x"


def case_reflected_priority():
    class A:
        def __add__(self, o):
            return "A.add"

    class B(A):
        def __radd__(self, o):
            return "B.radd"

    return A() + B(), B() + A(), (1).__add__(2)


def case_big_integers():
    x = 2**100
    x += 1
    return x, x * x, x % 97, -x >> 3, x & 0xFFFF, int(str(x)) == x


def case_string_building():
    s = ""
    for i in range(20):
        s += str(i)
    t = s
    t += "x"
    return s, t


def case_fstrings():
    x, w, name = 3.14159, 10, "n"
    return (
        f"{x}",
        f"{x:.2f}",
        f"{x:{w}.{2}f}",
        f"{name!r}",
        f"{name!s:>5}",
        f"{name!a}",
        "{}",
        f"{x=}",
        f"{x = :.1f}",
        f"a{name}b{w}c",
        f"{'nested' + f'{w}'}",
        f"{w:#x}",
        f"{[1, 2]}",
        f"{None}",
        f"{w:,}",
        f"{-w:+}",
        f"{name:*^9}",
    )


def case_fstring_objects():
    class F:
        def __format__(self, spec):
            print("format", repr(spec))
            return "F"

        def __str__(self):
            return "S"

        def __repr__(self):
            return "R"

    class S(str):
        def __format__(self, spec):
            return "sub" + spec

    f, s = F(), S("text")
    return f"{f}", f"{f:x}", f"{f!s}", f"{f!r:>4}", f"{s}", f"{s!s}", f"{s:q}", f"{f}{s}{f}"


def case_fstring_errors():
    out = []

    class B:
        def __format__(self, spec):
            return 5

        def __str__(self):
            return 6

    for f in (lambda: f"{1:q}", lambda: f"{B()}", lambda: f"{B()!s}", lambda: f"{[]:x}"):
        try:
            f()
        except (TypeError, ValueError) as e:
            out.append((type(e).__name__, str(e)))
    return out


def case_format_calls():
    return "{} {:>5} {x!r}".format(1, 2, x="y"), format(3.5, ".3f"), "%(a)s %(b)03d" % {"a": 1, "b": 2}


def case_bytes_and_bytearray():
    b = bytearray(b"ab")
    b += b"c"
    b[0] = 120
    return bytes(b), b"a" + b"b", b"a" * 3, b"abc"[1], b"abc"[1:]


def case_index_protocol():
    class I:
        def __index__(self):
            return 1

    return [1, 2, 3][I()], [1, 2, 3][I() :], "ab" * I(), range(5)[I()], hex(I())


def case_bool_arithmetic():
    return True + True, True & False, True ^ True, True | 2, -True, ~0, True / 2, not not 5


def case_is_with_singletons():
    a = None
    return a is None, a is not None, True is True, () is (), (1 == 1) is True  # noqa: F632


def case_evaluation_order():
    log = []

    def v(x):
        log.append(x)
        return x

    r = v(1) + v(2) * v(3) - v(4)
    d = {}
    d[v("k")] = v("v")
    v([0])[v(0)] = v(5)
    x = v(1) if v(0) else v(2)
    print(v(1), v(2), sep=v("-"))
    return r, d, x, log


def case_divmod_pow_round():
    return divmod(-7, 3), pow(3, -1, 7), round(-2.5), round(2.675, 2), abs(-3), 7 // -2, 7 % -2, -7 // 2.0
