"""Branches, loops, boolean operators, conditional expressions."""
# ruff: noqa: E742, F401, F821


def case_if_chain():
    out = []
    for i in range(6):
        if i == 0:
            out.append("zero")
        elif i % 2:
            out.append("odd")
        elif i > 3:
            out.append("big")
        else:
            out.append("even")
    return out


def case_while_else():
    n, seen = 5, []
    while n:
        n -= 1
        seen.append(n)
    else:
        seen.append("done")
    return seen


def case_while_break_else():
    n = 5
    while True:
        n -= 1
        if n == 2:
            break
    else:
        return "never"
    return n


def case_for_else_continue():
    out = []
    for i in range(5):
        if i == 1:
            continue
        out.append(i)
    else:
        out.append("else")
    for i in range(5):
        if i == 3:
            break
    else:
        out.append("not here")
    return out, i


def case_nested_loops_break():
    pairs = []
    for a in range(4):
        for b in range(4):
            if a * b == 6:
                break
            if b > a:
                continue
            pairs.append((a, b))
    return pairs


def case_loop_variable_survives():
    for i in []:
        pass
    try:
        return i
    except UnboundLocalError as e:
        return str(e)


def case_and_or_values():
    return [a and b or c for a in (0, 1, "") for b in (None, "b") for c in ([], 2)]


def case_and_or_not_chain():
    calls = []

    def t(x):
        calls.append(x)
        return x

    r = t(0) or (t(1) and t("")) or not t(None)
    return r, calls


def case_chained_comparison():
    calls = []

    def v(x):
        calls.append(x)
        return x

    return v(1) < v(2) < v(3), v(1) < v(0) < v(9), v(1) == v(1.0) != v(2) in v([2]), calls


def case_conditional_expression():
    return [("a" if i else "b") if i < 2 else "c" for i in range(4)]


def case_is_none_branches():
    out = []
    for v in (None, 0, False, ""):
        if v is None:
            out.append("none")
        if v is not None:
            out.append("some")
        while v is None:
            v = 1
        out.append(v)
    return out


def case_truth_of_objects():
    class T:
        def __bool__(self):
            print("bool")
            return False

    class L:
        def __len__(self):
            print("len")
            return 2

    return [1 if T() else 2, 1 if L() else 2, not T(), not L(), bool(T() or L())]


def case_truth_raises():
    class T:
        def __bool__(self):
            raise ValueError("no truth")

    if T():
        return 1
    return 2


def case_truth_wrong_type():
    class T:
        def __bool__(self):
            return 3

    return 1 if T() else 2


def case_walrus():
    data = [1, 5, 2, 8]
    out = []
    while (n := len(data)) > 1:
        out.append((n, data.pop()))
    if (m := max(data)) > 0:
        out.append(m)
    return out, [y for x in range(4) if (y := x * x) > 2], y


def case_assert_passes_and_fails():
    assert True, "fine"
    x = 3
    assert x == 4, f"x is {x}"


def case_assert_without_message():
    assert not 1


def case_pass_and_ellipsis():
    def f(): ...

    def g():
        pass

    return f(), g(), ...


def case_unpacking_targets():
    a, b = 1, 2
    a, b = b, a
    (c, (d, *e)), f = (3, (4, 5, 6)), 7
    [g, h] = "xy"
    *i, j = range(4)
    k, *l, m = "hello"
    x = y = z = [0]
    return a, b, c, d, e, f, g, h, i, j, k, l, m, x is y is z


def case_loop_over_unpacked():
    return [a + b * c for a, (b, c) in [(1, (2, 3)), (4, (5, 6))]]


def case_starred_for():
    return [(a, b) for a, *b in ["abc", (1, 2, 3), [9]]]


def case_delete_locals():
    a = b = c = 1
    del a, (b, c)
    try:
        return c
    except NameError as e:
        return type(e).__name__, str(e)


def case_delete_unbound():
    if False:
        a = 1
    del a


def case_unbound_later():
    for _ in range(2):
        try:
            print(late)
        except UnboundLocalError as e:
            print(e)
        late = 5
    return late


# fmt: off
def case_large_jump():
    x = 0
    for i in range(3):
        if i == 1:
            x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1  # noqa: E702
            x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1  # noqa: E702
            x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1  # noqa: E702
            x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1  # noqa: E702
            x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1  # noqa: E702
            x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1  # noqa: E702
            x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1  # noqa: E702
            x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1; x += 1  # noqa: E702
        else:
            x += 100
    return x
# fmt: on


def case_return_in_loop():
    for i in range(10):
        for j in range(10):
            if i * j == 42:
                return i, j


def case_range_iteration_mutation():
    items = [1, 2, 3]
    for x in items:
        if len(items) < 6:
            items.append(x * 10)
    return items


def case_dict_changed_while_iterating():
    d = {1: 1, 2: 2}
    for k in d:
        d[k + 10] = 1


def case_iter_protocols():
    class Old:
        def __getitem__(self, i):
            if i > 3:
                raise IndexError
            return i * i

    class New:
        def __iter__(self):
            print("iter")
            return iter((1, 2))

    return list(Old()), [x for x in New()], 4 in Old()


def case_not_iterable():
    for x in 5:
        print(x)


def case_iterator_raises():
    class I:
        n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            if self.n == 3:
                raise RuntimeError("third")
            return self.n

    out = []
    try:
        for x in I():
            out.append(x)
    except RuntimeError as e:
        return out, str(e), e.__traceback__.tb_lineno
