"""Random programs as Python text: tensor code among lists, dictionaries, objects, views, mutation and exceptions.

Owns the grammar. A program is the body of `program(a, b, n, items, table, thing)`: two float tensors of (rows, 3), an int,
a list and a dictionary that hold tensors, and an object with attributes. Names that a program reads are bound by then,
so that most programs run; those that raise are good programs too. Must not run anything.
"""

from hypothesis import strategies as st
from program_constructs import Constructs

INDENT = "    "
UNARY = [
    "torch.sin({0})",
    "{0}.relu()",
    "{0} * 2",
    "-{0}",
    "{0}.exp().clamp(max=5)",
    "{0} + 0.5",
    "torch.tanh({0}) * n",
    "{0}.abs()",
]
BINARY = ["{0} + {1}", "{0} * {1}", "{0} - 2 * {1}", "torch.maximum({0}, {1})", "torch.where({0} > 0, {0}, {1})"]
# Views and what may be one; all but the last four keep (rows, 3).
VIEWS = [
    "{0}[:]",
    "{0}.view({0}.shape)",
    "{0}.detach()",
    "{0}.t().t()",
    "{0}.flip(0)",
    "{0}.contiguous()",
    "{0}.clone()",
]
ROWS = ["{0}[0]", "{0}.sum(0)", "{0}[-1:]", "{0}.mean(0, keepdim=True)"]
IN_PLACE = [
    "{0}.add_(1)",
    "{0}.mul_({1})",
    "{0}[0] = 1.5",
    "{0}[:, 1] = {1}[:, 0]",
    "{0} += {1}",
    "{0} *= 0.5",
    "{0}.zero_()",
    "{0}[{0} > 1] = 0.25",
    "{0}.t().add_(n)",
    "{0}.copy_({1} * 2)",
]
NUMBERS = [
    "n + 1",
    "{0}.shape[0]",
    "n % 3",
    "len(items)",
    "n * 2 - 1",
    "int(n > 2)",
    "len(table)",
    "thing.count",
    "abs(n)",
]
CONDITIONS = [
    "n > 2",
    "n % 2 == 0",
    "{0}.shape[0] > 3",
    "len(items) < 3",
    "'x' in table",
    "thing.flag",
    "{0}.dim() == 2 and n",
    "isinstance(items[0], torch.Tensor)",
    "{0} is {1}",
    "{0}.requires_grad",
]
DATA_CONDITIONS = ["{0}.sum() > 0", "{0}.max().item() > 1", "bool(({0} > 0).any())"]
CONTAINERS = [
    "items.append({0})",
    "items.insert(0, {0})",
    "items[-1] = {0}",
    "items.extend([{0}, {1}])",
    "items.reverse()",
    "items.sort(key=lambda item: id(item) * 0)",
    "table['x'] = {0}",
    "table.setdefault('y', {0})",
    "table.pop('x', None)",
    "table.update(z={0}, x={1})",
    "thing.value = {0}",
    "thing.count += 1",
    "thing.flag = not thing.flag",
    "thing.log.append(n)",
    "SEEN.append(n)",
    "SHARED['last'] = {0}",
    "setattr(thing, 'extra', {0})",
    "items[:] = items[::-1]",
    "(items.pop() if len(items) > 1 else None)",
]
READS = [
    "items[0]",
    "items[-1]",
    "table.get('x', {0})",
    "table['k']",
    "thing.value",
    "getattr(thing, 'extra', {0})",
    "thing.scaled({0})",
    "[*items][0]",
    "sum(items[1:], items[0])",
    "max([{0}, {1}], key=lambda t: t.dim() + n)",
    "next(iter(table.values()))",
    "{{**table, 'q': {0}}}['q']",
    "dict(zip('ab', [{0}, {1}]))['b']",
    "[item * 2 for item in items][-1]",
    "(lambda u, v=n: u + v)({0})",
    "functools.reduce(lambda u, v: u + v, items)",
]


class _Writer(Constructs):
    """Draws statements; keeps which names are tensors of (rows, 3), or may be."""

    def __init__(self, draw):
        self.draw = draw
        self.tensors = ["a", "b"]
        self.count = 0
        self.lines = []
        self.left = draw(st.integers(3, 14))

    def pick(self, choices):
        return self.draw(st.sampled_from(choices))

    def tensor(self):
        return self.pick(self.tensors)

    def fill(self, pattern):
        return pattern.format(self.tensor(), self.tensor())

    def name(self, prefix="t"):
        self.count += 1
        return f"{prefix}{self.count}"

    def say(self, depth, text):
        self.lines.append(INDENT * depth + text)

    def bind(self, depth, expression, keeps_shape=True):
        name = self.name()
        self.say(depth, f"{name} = {expression}")
        if keeps_shape:
            self.tensors.append(name)
        return name

    def block(self, depth, size):
        """Statements whose new names are not known behind the block, for it may be left out."""
        known = len(self.tensors)
        for _ in range(size):
            self.statement(depth)
        del self.tensors[known:]

    def statement(self, depth):
        self.left -= 1
        simple = ["compute", "compute", "view", "in_place", "number", "store", "store", "load", "row"]
        simple += ["pause", "comprehension", "comprehension"]
        compound = ["branch", "loop", "attempt", "context", "function", "generator", "data_branch"]
        compound += [
            "kept_generator",
            "own_context",
            "carried",
            "local_class",
            "matching",
            "closure",
            "library",
            "nested",
        ]
        kind = self.pick(simple + (compound if depth < 4 and self.left > 0 else []))
        getattr(self, kind)(depth)

    def compute(self, depth):
        self.bind(depth, self.fill(self.pick(UNARY + BINARY)))

    def view(self, depth):
        self.bind(depth, self.fill(self.pick(VIEWS)))

    def row(self, depth):
        row = self.bind(depth, self.fill(self.pick(ROWS)), keeps_shape=False)
        self.bind(depth, f"{self.tensor()} + {row}")

    def in_place(self, depth):
        self.say(depth, self.fill(self.pick(IN_PLACE)))

    def number(self, depth):
        self.say(depth, f"n = {self.fill(self.pick(NUMBERS))}")

    def store(self, depth):
        self.say(depth, self.fill(self.pick(CONTAINERS)))

    def load(self, depth):
        self.bind(depth, self.fill(self.pick(READS)))

    def branch(self, depth):
        self.say(depth, f"if {self.fill(self.pick(CONDITIONS))}:")
        self.block(depth + 1, self.pick([1, 2]))
        if self.draw(st.booleans()):
            self.say(depth, "else:")
            self.block(depth + 1, 1)

    def data_branch(self, depth):
        self.say(depth, f"if {self.fill(self.pick(DATA_CONDITIONS))}:")
        self.block(depth + 1, 1)

    def loop(self, depth):
        kind = self.pick(["range", "items", "table", "while"])
        variable = self.name("i")
        if kind == "range":
            self.say(depth, f"for {variable} in range(n % 3 + 1):")
        elif kind == "items":
            self.say(depth, f"for {variable} in list(items):")
        elif kind == "table":
            self.say(depth, f"for {variable}, {variable}v in sorted(table.items()):")
        else:
            self.say(depth, f"{variable} = 0")
            self.say(depth, f"while {variable} < 2:")
            self.say(depth + 1, f"{variable} += 1")
        self.block(depth + 1, self.pick([1, 2]))
        if self.draw(st.booleans()):
            self.say(depth + 1, f"if n > 3: {self.pick(['break', 'continue'])}")

    def attempt(self, depth):
        self.say(depth, "try:")
        self.block(depth + 1, 1)
        trouble = self.pick(
            [
                "raise ValueError(n)",
                "table['missing']",
                "items[99]",
                f"{self.tensor()}.view(7, 7)",
                "if n > 2: raise KeyError('big')",
            ]
        )
        self.say(depth + 1, trouble)
        self.say(
            depth,
            f"except {self.pick(['ValueError', 'LookupError', '(RuntimeError, KeyError)', 'Exception'])} as error:",
        )
        self.say(depth + 1, "SEEN.append(type(error).__name__)")
        self.block(depth + 1, 1)
        if self.draw(st.booleans()):
            self.say(depth, "finally:")
            self.block(depth + 1, 1)

    def context(self, depth):
        self.say(
            depth,
            f"with {self.pick(['torch.no_grad()', 'torch.enable_grad()', 'Noted(thing)', 'contextlib.suppress(KeyError)'])}:",
        )
        self.block(depth + 1, self.pick([1, 2]))

    def function(self, depth):
        name = self.name("f")
        self.say(depth, f"def {name}(u, *more, w=n, **named):")
        self.say(depth + 1, "nonlocal n")
        self.say(depth + 1, "n = n + len(more) + len(named)")
        self.say(depth + 1, f"{self.pick(['items.append(u)', 'thing.count += w', 'u = u * w', 'pass'])}")
        self.say(depth + 1, f"return u + {self.tensor()}")
        call = self.pick(["({0})", "({0}, {1})", "({0}, w=2)", "(*[{0}, {1}], extra=1)", "(u={0}, **{{'w': 3}})"])
        self.bind(depth, name + self.fill(call))

    def generator(self, depth):
        name = self.name("g")
        self.say(depth, f"def {name}(u):")
        self.say(depth + 1, "for k in range(3):")
        self.say(depth + 2, "u = u + k")
        self.say(depth + 2, "sent = yield u")
        self.say(depth + 2, "thing.count += 1 if sent is None else 10")
        use = self.pick(
            ["list({0}({1}))[-1]", "sum({0}({1}))", "next({0}({1}))", "[u for u in {0}({1}) if u.dim()][0]"]
        )
        self.bind(depth, use.format(name, self.tensor()))


@st.composite
def programs(draw):
    """The text of a function `program`."""
    writer = _Writer(draw)
    while writer.left > 0:
        writer.statement(1)
    results = [writer.tensor() for _ in range(draw(st.integers(1, 3)))] + ["n"]
    writer.say(1, f"return {', '.join(results)}")
    return "def program(a, b, n, items, table, thing):\n" + "\n".join(writer.lines) + "\n"
