"""Lists, tuples, sets, dicts, slices, unpacking, comprehensions."""
# ruff: noqa: E742, F401, F821


def case_displays():
    a, t = [1, 2], (3,)
    return [*a, *t, 4], (*a, 5), {*a, *"xy"} == {1, 2, "x", "y"}, {**{"a": 1}, "b": 2, **{"a": 3}}, [], (), {}, set()


def case_constant_displays():
    return [1, 2, 3, 4, 5], (1, (2, 3)), {1, 2, 3}, {"a": 1, "b": [2]}, [[], [[]]], {1: {2: {3: 4}}}


def case_dict_order_of_evaluation():
    log = []

    def v(x):
        log.append(x)
        return x

    d = {v("k1"): v("v1"), v("k2"): v("v2")}
    e = {v(k): v(k + 1) for k in range(2)}
    return d, e, log


def case_large_dict_display():
    x = 1
    return {
        "a": x,
        "b": x,
        "c": x,
        "d": x,
        "e": x,
        "f": x,
        "g": x,
        "h": x,
        "i": x,
        "j": x,
        "k": x,
        "l": x,
        "m": x,
        "n": x,
        "o": x,
        "p": x,
        "q": x,
        "r": x,
        "s": x,
    }


def case_unhashable():
    out = []
    for f in (
        lambda: {[]: 1},
        lambda: {[]},
        lambda: {**{1: 2}, []: 3},
        lambda: {x: 1 for x in [[]]},
        lambda: {x for x in [{}]},
    ):
        try:
            f()
        except TypeError as e:
            out.append(str(e))
    return out


def case_star_display_errors():
    out = []
    for f in (lambda: [*5], lambda: (*None,), lambda: {*1.5}, lambda: {**5}, lambda: {**[1]}):
        try:
            f()
        except TypeError as e:
            out.append(str(e))
    return out


def case_subscripts():
    d = {"a": [1, 2, {"b": (3, 4)}]}
    d["a"][2]["b"] += (5,)
    d["c"] = d["a"][0:2]
    del d["a"][0]
    d["a"][0] += 10
    return d


def case_subscript_errors():
    out = []
    for f in (
        lambda: [][0],
        lambda: {}["x"],
        lambda: 5[0],
        lambda: (1,)["a"],
        lambda: [].__setitem__(3, 1),
        lambda: "a"[5],
    ):
        try:
            f()
        except (LookupError, TypeError) as e:
            out.append((type(e).__name__, str(e)))
    return out


def case_store_subscript_error():
    t = (1, 2)
    t[0] = 3


def case_delete_subscript_error():
    d = {}
    del d["x"]


def case_slices():
    s = list(range(10))
    a, b, c = 2, -1, 3
    t = s[:]
    t[1:3] = "xyz"
    t[::4] = [0, 0, 0]
    u = s[:]
    del u[a:b:c]
    del u[:2]
    return s[a:b], s[::c], s[a:], s[:b], s[::-1], s[a:b:c], "hello"[1:-1], (1, 2, 3)[slice(0, 2)], t, u, s[None:None]


def case_slice_augmented():
    s = [1, 2, 3, 4]
    s[1:3] += [9]
    s[::2] = [0] * len(s[::2])
    return s


def case_slice_objects_seen():
    class S:
        def __getitem__(self, k):
            return k

        def __setitem__(self, k, v):
            print("set", k, v)

        def __delitem__(self, k):
            print("del", k)

    s = S()
    s[1:2] = 3
    s[1:2:3] = 4
    del s[1:]
    s[:2] += (5,) if False else slice(0).__class__ and 0 or 0
    return s[1:2], s[:, 1], s[...], s[1:2, ::3]


def case_slice_bad_index():
    return [1, 2]["a":]


def case_unpack_errors():
    out = []

    def two(v):
        a, b = v

    def star(v):
        a, *b, c, d = v

    for f, v in (
        (two, [1]),
        (two, [1, 2, 3]),
        (two, 5),
        (two, None),
        (star, [1, 2]),
        (star, 7),
        (two, "abc"),
        (two, {1: 2}),
        (two, iter([1])),
    ):
        try:
            f(v)
        except (ValueError, TypeError) as e:
            out.append(str(e))
    return out


def case_unpack_raising_iterator():
    class I:
        def __iter__(self):
            yield 1
            raise KeyError("mid")

    a, b = I()


def case_unpack_order():
    log = []

    class T:
        def __setattr__(self, k, v):
            log.append((k, v))

        def __setitem__(self, k, v):
            log.append((k, v))

    t = T()
    t.a, t["b"], *t.c, t.d = range(6)
    return log


def case_augmented_targets():
    log = []

    class C:
        def __init__(self):
            self.v = [1]

        def __getitem__(self, k):
            log.append(("get", k))
            return 5

        def __setitem__(self, k, v):
            log.append(("set", k, v))

    c = C()
    c["k"] += 1
    c.v += [2]
    c.v *= 2
    return log, c.v


def case_augmented_tuple_list_quirk():
    t = ([],)
    try:
        t[0] += [1]
    except TypeError as e:
        return t, str(e)


def case_list_comprehensions():
    m = [[1, 2], [3, 4]]
    x = "kept"
    return (
        [x for r in m for x in r if x % 2],
        x,
        [[c * 2 for c in r] for r in m],
        [i for i in range(3) if i if i > 1],
        [a + b for a, b in m],
    )


def case_set_dict_comprehensions():
    return (
        {x % 3 for x in range(7)},
        {k: v for k, v in zip("abc", range(3)) if v},
        {x: [y for y in range(x)] for x in range(3)},
    )


def case_comprehension_closures():
    n = 10
    fs = [lambda y: x + y + n for x in range(3)]
    gs = {k: (lambda: k) for k in "ab"}
    return [f(1) for f in fs], gs["a"](), [[(lambda: (i, j))() for j in range(2)] for i in range(2)]


def case_comprehension_shadowing():
    x = 1
    ys = [x for x in range(3)]
    zs = [[x for x in range(y)] for y in range(3)]
    return x, ys, zs


def case_comprehension_unbound_after():
    [q for q in range(3)]
    try:
        q
    except NameError as e:
        return type(e).__name__, str(e)


def case_comprehension_raises():
    a = 5
    try:
        return [1 / (a - x) for a in (1, 2) for x in range(4)]
    except ZeroDivisionError as e:
        return a, e.__traceback__.tb_lineno > 0


def case_comprehension_raises_uncaught():
    v = 1
    return {k: 1 / k for k in (2, 1, 0)}


def case_comprehension_with_walrus():
    return [last := i for i in range(4)], last, any((hit := w) for w in (0, 3, 5)), hit


def case_comprehension_in_class():
    class A:
        n = 3
        squares = [i * i for i in range(n)]
        table = {i: j for i in range(2) for j in [i]}

    return A.squares, A.table


def case_comprehension_locals():
    a = 1
    return [sorted(k for k in locals() if k in "ab") for b in range(1)][0][:1] != [] or "empty"


def case_nested_generator_in_comprehension():
    return [sum(x for x in range(n)) for n in range(4)], list((a, b) for a in range(2) for b in (c for c in "xy"))


def case_del_many():
    d = {i: i for i in range(5)}
    l = list(range(5))
    del d[0], d[1], l[0], l[0:2]
    return d, l


def case_string_methods_and_join():
    return ",".join(str(i) for i in range(4)), "a-b".split("-"), "%s-%d" % ("x", 3), "abc"[::-1], "x" in "xyz"


def case_sort_stability_and_cmp():
    class C:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def __lt__(self, o):
            return self.a < o.a

        def __repr__(self):
            return f"{self.a}{self.b}"

    return sorted([C(2, "x"), C(1, "y"), C(2, "a"), C(1, "b")])


def case_contains_variants():
    class C:
        def __contains__(self, x):
            return "yes"

    class I:
        def __iter__(self):
            return iter([1, 2])

    out = [1 in C(), 2 in I(), 3 not in I(), 1 in {1: 2}, "a" not in ["a"]]
    try:
        1 in 5
    except TypeError as e:
        out.append(str(e))
    return out


def case_big_tuple_and_list():
    x = 1
    t = (
        x,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
        15,
        16,
        17,
        18,
        19,
        20,
        21,
        22,
        23,
        24,
        25,
        26,
        27,
        28,
        29,
        30,
        31,
        32,
        x,
    )
    return len(t), sum([*t, *t])


def case_set_operations():
    s = {1, 2}
    s |= {3}
    s &= {2, 3}
    s ^= {5}
    t = s - {2}
    return sorted(s), sorted(t), {1} < {1, 2}, {1, 2} == {2, 1}
