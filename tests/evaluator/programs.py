"""Random Python programs as hypothesis strategies: one function `program()` that always ends, in the text of a module.

Statements and expressions are chosen so that errors of all kinds occur, in and out of handlers, loops and generators.
"""

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "d")
_BINARY = (
    "+",
    "-",
    "*",
    "//",
    "%",
    "&",
    "|",
    "^",
    "<<",
    "<",
    "<=",
    "==",
    "!=",
    ">",
    "is",
    "is not",
    "in",
    "not in",
    "and",
    "or",
)
_AUGMENTED = ("+=", "-=", "*=", "//=", "%=", "|=", "&=")
_ERRORS = ("ValueError", "KeyError", "TypeError", "ZeroDivisionError", "LookupError", "Exception")

_atoms = st.one_of(
    st.sampled_from(NAMES),
    st.integers(-3, 9).map(str),
    st.sampled_from(
        [
            "'x'",
            "''",
            "None",
            "True",
            "1.5",
            "[]",
            "()",
            "{}",
            "[1, 2, 3]",
            "(1, 'y')",
            "{'k': 1}",
            "range(3)",
            "unknown",
        ]
    ),
)


def _compound(inner):
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, st.sampled_from(_BINARY), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda e: f"(not {e})"),
        inner.map(lambda e: f"(-{e})"),
        pair.map(lambda t: f"{t[0]}[{t[1]}]" if t[0][0] not in "-0123456789" else f"({t[0]})"),
        pair.map(lambda t: f"[{t[0]}, {t[1]}]"),
        pair.map(lambda t: f"({t[0]}, *[{t[1]}])"),
        pair.map(lambda t: f"{{{t[0]}: {t[1]}}}"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} < {t[1]} <= {t[2]})"),
        pair.map(lambda t: f"[(v, {t[0]}) for v in tick({t[1]})]"),
        pair.map(lambda t: f"list({t[0]} for v in tick({t[1]}) if v)"),
        pair.map(lambda t: f"{{v: {t[0]} for v in tick({t[1]})}}"),
        inner.map(lambda e: f"(lambda v=1: ({e}, v))()"),
        inner.map(lambda e: f"show({e})"),
        pair.map(lambda t: f"show({t[0]}, k={t[1]})"),
        pair.map(lambda t: f"show(*tick({t[0]}), **{{'q': {t[1]}}})"),
        inner.map(lambda e: f"len({e})"),
        inner.map(lambda e: f"str({e})"),
        inner.map(lambda e: 'f"<{' + e.replace('"', "'") + '!r}>"' if "{" not in e and "'" not in e else e),
        st.tuples(st.sampled_from(NAMES), inner).map(lambda t: f"({t[0]} := {t[1]})"),
        inner.map(lambda e: f"sum(steps({e}), [])"),
    )


expressions = st.recursive(_atoms, _compound, max_leaves=5)


def _block(lines):
    return ["    " + line for line in lines] or ["    pass"]


def _loop(head, body, tail):
    return [head, *_block(["spend()", *body]), *(["else:", *_block(tail)] if tail else [])]


def _try(body, kind, name, handler, final, otherwise):
    lines = ["try:", *_block(body), f"except {kind} as {name}_e:", *_block([f"show({name}_e)", *handler])]
    if otherwise:
        lines += ["else:", *_block(otherwise)]
    return lines + (["finally:", *_block(final)] if final else [])


def _match(subject, body, other):
    cases = ("int(c)", "[a, *b]", "{'k': d, **c}", "None | True", "str() as a")
    lines = [f"match {subject}:"]
    for case, inner in zip(cases, (body, other, [], body, other)):
        lines += [f"    case {case}:", *_block(_block(inner))]
    return lines


def _simple():
    name = st.sampled_from(NAMES)
    return st.one_of(
        st.tuples(name, expressions).map(lambda t: [f"{t[0]} = {t[1]}"]),
        st.tuples(name, st.sampled_from(_AUGMENTED), expressions).map(lambda t: [f"{t[0]} {t[1]} {t[2]}"]),
        st.tuples(name, name, expressions).map(lambda t: [f"{t[0]}, {t[1]} = {t[2]}"]),
        st.tuples(name, name, expressions).map(lambda t: [f"{t[0]}, *{t[1]} = {t[2]}"]),
        st.tuples(name, expressions, expressions).map(lambda t: [f"{t[0]}[{t[1]}] = {t[2]}"]),
        expressions.map(lambda e: [f"show({e})"]),
        name.map(lambda n: [f"del {n}"]),
        expressions.map(lambda e: [f"assert {e}"]),
        st.sampled_from(_ERRORS).map(lambda e: [f"raise {e}('made')"]),
        st.tuples(st.sampled_from(_ERRORS), expressions).map(lambda t: [f"raise {t[0]} from {t[1]}"]),
        st.just(["raise"]),
        expressions.map(lambda e: [f"return {e}"]),
        st.just(["yield_point()"]),
    )


def _nested(inner):
    body = st.lists(inner, min_size=1, max_size=3).map(lambda blocks: sum(blocks, []))
    maybe = st.one_of(st.just([]), body)
    name = st.sampled_from(NAMES)
    return st.one_of(
        st.tuples(expressions, body, maybe).map(
            lambda t: [f"if {t[0]}:", *_block(t[1]), *(["else:", *_block(t[2])] if t[2] else [])]
        ),
        st.tuples(name, expressions, body, maybe).map(lambda t: _loop(f"for {t[0]} in tick({t[1]}):", t[2], t[3])),
        st.tuples(expressions, body, maybe).map(lambda t: _loop(f"while {t[0]}:", t[1], t[2])),
        st.tuples(name, expressions, body, st.sampled_from(["break", "continue"])).map(
            lambda t: _loop(f"for {t[0]} in tick([1, {t[1]}, 2]):", [*t[2], f"if {t[0]}: {t[3]}"], [])
        ),
        st.tuples(body, st.sampled_from(_ERRORS), name, maybe, maybe, maybe).map(lambda t: _try(*t)),
        st.tuples(body, body).map(lambda t: ["try:", *_block(t[0]), "finally:", *_block(t[1])]),
        st.tuples(st.booleans(), name, body).map(lambda t: [f"with Manager({t[0]}) as {t[1]}:", *_block(t[2])]),
        st.tuples(expressions, body, body).map(lambda t: _match(*t)),
        st.tuples(name, body, name).map(
            lambda t: [f"def inner({t[0]}=2):", *_block(["spend()", f"{t[2]} = 1", *t[1]]), "show(inner())"]
        ),
        st.tuples(name, body).map(
            lambda t: ["def closure():", *_block([f"nonlocal {t[0]}", "spend()", *t[1]]), "show(closure())"]
        ),
        st.tuples(name, body, expressions).map(
            lambda t: [
                "def gen(a=1, b=2, c=3, d=4):",
                *_block(["spend()", f"got = yield {t[2]}", *t[1], f"yield from tick({t[0]})"]),
                "show(list(gen()))",
            ]
        ),
        st.tuples(name, body).map(
            lambda t: (
                ["class K:", *_block([f"{t[0]} = 5", *[s for s in t[1] if "return" not in s]])]
                if not any("return" in s or "nonlocal" in s for s in t[1])
                else t[1]
            )
        ),
    )


statements = st.recursive(_simple(), _nested, max_leaves=12)

PRELUDE = """
fuel = 60
class OutOfFuel(BaseException): pass
def spend():
    global fuel
    fuel -= 1
    if fuel < 0:
        raise OutOfFuel
def show(*args, **kw):
    print(*[str(a)[:200] for a in args], sorted(kw))
    return args[0] if args else None
def tick(v):
    spend()
    return v if isinstance(v, (list, tuple, range, str, dict)) else [v] if isinstance(v, int) else []
def steps(v):
    for x in tick(v):
        yield [x]
def yield_point():
    return None
class Manager:
    def __init__(self, swallow): self.swallow = swallow
    def __enter__(self): return 3
    def __exit__(self, kind, value, tb):
        print("exit", kind)
        return self.swallow and kind is not OutOfFuel
"""


def _program(blocks):
    body = ["a, b, c, d = 1, [2], 'three', {'k': 4}"]
    for block in blocks[:-1]:  # an error ends a block, so that the next ones run too
        body += ["try:", *_block(block), "except Exception as error:", "    show(type(error), error)"]
    body += [*blocks[-1], "return a, b, c, d"]
    return PRELUDE + "def program():\n" + "\n".join(_block(body)) + "\n"


programs = st.lists(statements, min_size=1, max_size=6).map(_program)
