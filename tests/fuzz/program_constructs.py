"""Statements of random programs that use more of Python: generators that are kept, context managers, exceptions that
carry tensors, dataclasses, classes, `match`, closures and the library's containers, with breaks between.

Owns these parts of the grammar (program_text.py has the rest). Each writes lines through the writer it is mixed into.
Must not run anything.
"""

PAUSES = ["time.monotonic()", "{0}.sum().item()", "float({0}[0, 0])", "{0}.tolist()"]
RAISED = ["raise Carrier({0}, n)", "raise ValueError(n)", "if n > 2: raise Carrier({0} * n, 'big')", "pass"]
MATCHED = ["{{'k': {0}, 'n': n}}", "[{0}, n]", "({0}, {1}, n)", "Pair({0}, n)", "n", "'text'", "None"]
# Local containers: how they are made, and what is read off them.
LIBRARY = [
    ("collections.deque([{0}, {1}], maxlen=2)", "{c}[-1]", "{c}.appendleft({0})"),
    ("collections.OrderedDict(p={0}, q={1})", "{c}[next(iter({c}))]", "{c}.move_to_end('p')"),
    ("collections.defaultdict(lambda: {0}, p={1})", "{c}['new']", "{c}['p'].add_(1)"),
    ("Point({0}, {1})", "{c}._replace(x={0}).x + {c}.y", "hash({c}._fields)"),
    ("Pair({0}, n)", "dataclasses.replace({c}, left={1}).left * {c}.right", "{c}.left.mul_(2)"),
    ("types.SimpleNamespace(v={0}, w=[{1}])", "{c}.w[0] + {c}.v", "{c}.w.append(n)"),
    ("collections.ChainMap({{'p': {0}}}, table)", "{c}['k']", "{c}.__setitem__('new', {1})"),
    ("itertools.chain([{0}], items)", "next({c})", "SEEN.append(type({c}).__name__)"),
    ("[[{0}, n], [{1}, n + 1]]", "{c}[1][0]", "{c}[0].append({c}.pop())"),
    ("iter([{0}, {1}, {0} * 2])", "next({c}, {0})", "next({c}, None)"),
]


class Constructs:
    """To be mixed into a writer."""

    def pause(self, depth):
        self.say(depth, f"SEEN.append(len(str({self.fill(self.pick(PAUSES))})) * 0)")

    def nested(self, depth):
        """A function that pauses somewhere, called through others that go on behind it."""
        name = self.name("f")
        self.say(depth, f"def {name}(u, v=n):")
        self.say(depth + 1, "nonlocal n")
        self.say(depth + 1, f"w = u {self.pick(['* 2', '+ v', '- b'])}")
        self.block(depth + 1, self.pick([0, 1]))
        self.pause(depth + 1)
        self.block(depth + 1, self.pick([0, 1]))
        self.say(depth + 1, f"return w {self.pick(['* v', '+ u', '.cos()'])}")
        for _ in range(self.pick([0, 1, 2])):
            inner, name = name, self.name("f")
            self.say(depth, f"def {name}(u, {self.pick(['k=n', '*more, k=1', 'k=2, **named'])}):")
            self.say(depth + 1, "nonlocal n")
            self.say(depth + 1, f"x = u {self.pick(['* 0.5', '+ k', ''])}")
            self.say(depth + 1, f"y = {inner}({self.pick(['x', 'x, k', '*[x]', 'x, **dict(v=n)'])})")
            self.say(
                depth + 1, self.pick(["thing.count += k", "n = n + 1", "items.append(y)", "SEEN.append(k)", "pass"])
            )
            self.block(depth + 1, self.pick([0, 1]))
            self.say(depth + 1, f"return y {self.pick(['+ x', '* (n % 3 + 1)', ''])}")
        self.bind(depth, f"{name}({self.tensor()})")

    def kept_generator(self, depth):
        """One generator that is advanced here, and perhaps again later."""
        name = self.name("g")
        self.say(depth, f"def {name}m(u, v=n):")
        self.say(depth + 1, "try:")
        self.say(depth + 2, "while True:")
        self.say(depth + 3, f"u = u {self.pick(['* 0.5', '+ v', '- 1'])}")
        self.say(depth + 3, "got = yield u")
        self.say(depth + 3, f"u = u if got is None else u + got; {self.pick(['pass', 'thing.count += 1'])}")
        self.say(depth + 1, "except KeyError as error:")
        self.say(depth + 2, "yield u * 3")
        self.say(depth + 1, "finally:")
        self.say(depth + 2, "SEEN.append(v)")
        self.say(depth, f"{name} = {name}m({self.tensor()})")
        self.bind(depth, f"next({name})")
        self.block(depth, self.pick([0, 1]))
        uses = ["next({0})", "{0}.send({1})", "{0}.throw(KeyError('in'))", "[*zip({0}, range(2))][-1][0]"]
        self.bind(depth, self.pick(uses).format(name, self.tensor()))
        self.say(depth, f"{name}.close()")  # one that is left alive in a cycle dies when the collector comes by

    def own_context(self, depth):
        name = self.name("m")
        self.say(depth, "@contextlib.contextmanager")
        self.say(depth, f"def {name}(u):")
        self.say(depth + 1, "SEEN.append('in')")
        self.say(depth + 1, "try:")
        self.say(depth + 2, f"yield u {self.pick(['* 2', '+ 1', ''])}")
        self.say(depth + 1, f"except {self.pick(['Carrier', 'ValueError', 'KeyError'])} as error:")
        self.say(depth + 2, "SEEN.append(type(error).__name__)")
        self.say(depth + 1, "finally:")
        self.say(depth + 2, f"{self.pick(['thing.count += 1', 'items.append(u)', 'u.add_(1)'])}")
        entered = self.name()
        stack = self.pick([True, False])
        manager = f"{name}({self.tensor()})"
        if stack:
            self.say(depth, f"with contextlib.ExitStack() as {name}s:")
            self.say(depth + 1, f"{entered} = {name}s.enter_context({manager})")
            self.say(depth + 1, f"{name}s.callback(SEEN.append, n)")
        else:
            self.say(depth, f"with {manager} as {entered}:")
        self.block_with(depth + 1, entered)
        self.say(depth + 1, self.fill(self.pick(RAISED)))

    def block_with(self, depth, name):
        """A statement that may use a name which is not known behind it."""
        self.tensors.append(name)
        self.block(depth, 1)
        self.tensors.remove(name)

    def carried(self, depth):
        """An exception that carries a tensor out of a function, perhaps through another one."""
        name = self.name("f")
        self.say(depth, f"def {name}(u):")
        self.say(depth + 1, "try:")
        self.say(depth + 2, self.fill(self.pick(RAISED)))
        self.say(depth + 2, "return u * 2")
        self.say(depth + 1, f"except {self.pick(['ValueError', 'KeyError', 'Carrier'])} as error:")
        ends = ["raise Carrier(u, 'again') from error", "raise", "return u + len(error.args)"]
        self.say(depth + 2, self.pick(ends))
        self.say(depth + 1, "finally:")
        self.say(depth + 2, "SEEN.append(n)")
        result = self.name()
        self.say(depth, "try:")
        self.say(depth + 1, f"{result} = {name}({self.tensor()})")
        self.say(depth, "except Carrier as error:")
        self.say(depth + 1, f"{result} = error.tensor + (error.__cause__ is not None)")
        self.say(depth, "except ValueError:")
        self.say(depth + 1, f"{result} = {self.tensor()} * 1")
        self.tensors.append(result)

    def local_class(self, depth):
        name = self.name("C")
        base = self.pick(["", "(Thing)", "(Base)", "(Base)"])
        self.say(depth, f"class {name}{base}:")
        self.say(depth + 1, f"held = {self.tensor()}")
        self.say(depth + 1, "def __init__(self, u):")
        self.say(depth + 2, f"{'super().__init__(u); ' if base else ''}self.u = u")
        self.say(depth + 1, "@property")
        self.say(depth + 1, "def twice(self): return self.u * 2")
        self.say(depth + 1, "def __add__(self, other): return self.u + self.held + other")
        self.say(depth + 1, "def __call__(self, k=2): self.u = self.u + k; return self.twice")
        self.say(depth + 1, "def __getitem__(self, k): return self.u * k")
        made = f"{name}o"
        self.say(depth, f"{made} = {name}({self.tensor()})")
        self.block(depth, self.pick([0, 0, 1]))
        uses = [f"{made} + n", f"{made}()", f"{made}.twice", f"{made}[n]", f"{made}(k=n) + {name}.held"]
        self.bind(depth, self.pick(uses))

    def matching(self, depth):
        result = self.name()
        self.say(depth, f"match {self.fill(self.pick(MATCHED))}:")
        cases = [
            ("{'k': found, **rest}", "found + len(rest)"),
            ("[found, int(count)]", "found * count"),
            ("[found, *rest] if n > 2", "found - len(rest)"),
            ("Pair(left=found, right=3)", "found * 3"),
            ("Pair(found)", "found"),
            ("int() | None as other", f"{self.tensor()} + (other or 0)"),
        ]
        for pattern, value in cases:
            if self.pick([True, True, False]):
                self.say(depth + 1, f"case {pattern}:")
                self.say(depth + 2, f"{result} = {value}")
        self.say(depth + 1, "case _:")
        self.say(depth + 2, f"{result} = {self.tensor()}")
        self.tensors.append(result)

    def closure(self, depth):
        """Functions that share a cell which holds a tensor."""
        name = self.name("k")
        self.say(depth, f"def {name}m(held, log=[]):")
        self.say(depth + 1, "def put(u):")
        self.say(depth + 2, "nonlocal held")
        self.say(depth + 2, "held = held + u; log.append(n)")
        self.say(depth + 2, "return put")
        self.say(depth + 1, "return put, lambda scale=2: held * scale + len(log)")
        self.say(depth, f"{name}p, {name}g = {name}m({self.tensor()})")
        self.say(depth, f"{name}p({self.tensor()})({self.tensor()})")
        self.block(depth, self.pick([0, 1]))
        self.bind(depth, f"{name}g({self.pick(['', 'n', 'scale=3'])})")

    def library(self, depth):
        name = self.name("c")
        make, read, change = self.pick(LIBRARY)
        self.say(depth, f"{name} = {self.fill(make)}")
        if self.pick([True, False]):
            self.say(depth, self.fill(change.replace("{c}", name)))
        self.block(depth, self.pick([0, 0, 1]))
        self.bind(depth, self.fill(read.replace("{c}", name)))

    def comprehension(self, depth):
        expressions = [
            "[u * k for k, u in enumerate([{0}, {1}]) if k < n][-1]",
            "(lambda found: found + found)(saved := {0} * 2)",
            "{{k: u for k, u in zip('ab', ({0}, {1}))}}['a']",
            "sum(u * 0.5 for u in [{0}, {1}, *items[:1]])",
            "[v for u in [[{0}], [{1}]] for v in u][n % 2]",
            "(lambda *u, **v: u[-1] + len(v))({0}, {1}, **{{'w': n}})",
            "functools.partial(torch.add, alpha=2)({0}, {1})",
            "list(map(lambda u, v: u * v, [{0}], [{1}]))[0]",
            "sorted([(2, {0}), (1, {1})], key=lambda pair: pair[0])[0][1]",
            "list(itertools.accumulate([{0}, {1}], lambda u, v: u + v))[-1]",
        ]
        self.bind(depth, self.fill(self.pick(expressions)))
