"""What a program learns of identities is guarded; copies of objects from outside are captured, copy.deepcopy too."""

import collections
import copy
import dataclasses

import pytest
import torch
from judging import check, regions

import graphlift


class Plain:
    def __init__(self, *items):
        self.items = list(items)
        self.table = {"a": [1, 2]}
        self.me = self


class Slotted:
    __slots__ = ("first", "second")

    def __init__(self):
        self.first = [1]


class Renaming(Plain):
    def __getattribute__(self, name):
        return super().__getattribute__("items" if name == "things" else name)


class WithState(Plain):
    def __getstate__(self):
        return {"items": self.items[:]}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.restored = len(state)


class WithNewArguments:
    def __new__(cls, first):
        made = object.__new__(cls)
        made.first = first
        return made

    def __getnewargs__(self):
        return (self.first,)


class Reducing:
    def __init__(self, count):
        self.count = count

    def __reduce__(self):
        return Reducing, (self.count + 1,)


class Listing(list):
    pass


class Mapping(dict):
    pass


@dataclasses.dataclass
class Record:
    n: int = 1
    items: list = dataclasses.field(default_factory=lambda: [1, [2]])


MAKERS = {
    "plain": lambda: Plain(1, [2]),
    "slots": Slotted,
    "getattribute": lambda: Renaming(3),
    "state": lambda: WithState(4),
    "new_arguments": lambda: WithNewArguments([1]),
    "reduce": lambda: Reducing(2),
    "list": lambda: Listing([1, [2]]),
    "dict": lambda: Mapping(a=[1]),
    "dataclass": Record,
    "set": lambda: {1, 2},
    "ordered": lambda: collections.OrderedDict(a=[1]),
    "nested": lambda: (1, [2, {"a": [3]}]),
}


def shown(value, depth=0):
    """Everything of an object, as text can be compared."""
    if depth > 4:
        return "..."
    if isinstance(value, dict):
        return type(value).__name__, [(key, shown(item, depth + 1)) for key, item in value.items()]
    if isinstance(value, list | tuple | set):
        return type(value).__name__, [shown(item, depth + 1) for item in value]
    if hasattr(value, "__dict__"):
        return type(value).__name__, shown(vars(value), depth + 1)
    slots = getattr(type(value), "__slots__", ())
    return [(name, shown(getattr(value, name, None), depth + 1)) for name in slots] or value


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", MAKERS)
def test_copies_of_objects_from_outside(kind, copier):
    def f(x, given):
        return x * 2, copier(given)

    graphlift.reset()
    compiled, make = graphlift.compile(f), MAKERS[kind]
    for _ in range(3):
        given = make()
        value, got = compiled(torch.ones(2), given)
        assert shown(got) == shown(copier(given)) and shown(given) == shown(make())
        assert type(got) is type(given) and value.tolist() == [2, 2]
        if kind == "plain" and copier is copy.deepcopy:
            assert got.me is got and got.items is not given.items
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"], counts["hits"]) == (1, 0, 2), counts


def test_a_changed_copy_leaves_the_original_and_the_content_is_guarded():
    def f(x, given):
        other = copy.deepcopy(given)
        other.items.append(2)
        return x * len(other.items) + len(given.items)

    graphlift.reset()
    compiled, given = graphlift.compile(f, fullgraph=True), Plain(1)
    assert compiled(torch.ones(1), given).item() == 3
    given.items.append(5)
    assert compiled(torch.ones(1), given).item() == 5


@pytest.mark.parametrize("order", [((0, 0), (0, 1)), ((0, 1), (0, 0))])
def test_a_deep_copy_shares_what_the_original_shares(order):
    compiled = graphlift.compile(lambda x, given: (x * 2, copy.deepcopy(given)))
    for first, second in order * 2:
        parts = [[1], [1]]
        given = [parts[first], parts[second]]
        _, got = compiled(torch.ones(1), given)
        assert (got[0] is got[1]) == (first == second)
    regions(2, 0)


QUESTIONS = {
    "is": lambda x, a, b: x * 2 if a is b else x * 3,
    "id": lambda x, a, b: x * 2 if id(a) == id(b) else x * 3,
    "in list": lambda x, a, b: x * 2 if a in [b, 1] else x * 3,
    "in tuple of the caller": lambda x, a, b: x * 2 if a in (b,) else x * 3,
    "set": lambda x, a, b: x * len({a, b}),
    "dict": lambda x, a, b: x * {a: 1, b: 2}[a],
    "key": lambda x, a, b: x * {a: 1}.get(b, 3),
    "set comprehension": lambda x, a, b: x * len({one for one in (a, b)}),
    "index": lambda x, a, b: x * [b, a].index(a),
    "count": lambda x, a, b: x * [b, a].count(a),
    "equal lists": lambda x, a, b: x * 2 if [a, 1] == [b, 1] else x * 3,
}


def a_tensor():
    return torch.ones(1)


def a_module():
    return torch.nn.Linear(1, 1)


BY_IDENTITY = {"object": object, "plain": Plain, "module": a_module}


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("kind", BY_IDENTITY)
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_identity_decides_is_guarded(question, kind, first):
    f = QUESTIONS[question]
    compiled, make = graphlift.compile(f), BY_IDENTITY[kind]
    for same in (first, not first, first):
        a, b = make(), make()
        given = (torch.ones(2), a, a if same else b)
        torch.testing.assert_close(compiled(*given), f(*given))
    if question != "id":
        regions(2, 0)
    elif kind == "object":  # no weak reference holds it; addresses are numbers that vary
        assert graphlift.graph_count() >= 2 and graphlift.counters()["graph_breaks"] == 3
    else:
        regions(3, 0)  # tied to the very objects


@pytest.mark.parametrize("question", ["is", "id", "set", "dict", "key", "set comprehension"])
@pytest.mark.parametrize("first", [False, True])
def test_what_the_identity_of_tensors_decides_is_guarded(question, first):
    f = QUESTIONS[question]
    compiled = graphlift.compile(f)
    for same in (first, not first, first):
        a, b = torch.ones(3), torch.ones(3)
        given = (torch.ones(2), a, a if same else b)
        torch.testing.assert_close(compiled(*given), f(*given))
    if question == "id":  # no weak reference holds a tensor; addresses are numbers that vary
        assert graphlift.graph_count() >= 2 and graphlift.counters()["graph_breaks"] == 3
    else:
        regions(2, 0)


# Whether a weak reference can hold it: the region is tied to the object then, else id() is a break.
HELD = {object: False, list: False, dict: False, set: True, a_tensor: False, a_module: True}


@pytest.mark.parametrize("make", HELD)
def test_the_address_of_an_object_from_outside_is_the_real_one(make):
    compiled, kept = graphlift.compile(lambda x, given: (x * 2, id(given))), []
    for _ in range(3):
        kept.append(make())
        assert compiled(torch.ones(2), kept[-1])[1] == id(kept[-1])
    regions(*((3, 0) if HELD[make] else (1, 1)))


def test_a_memo_of_the_program_is_one_region():
    def f(x):
        part = [x + 1]
        seen = {id(part): part}
        return seen[id(part)][0] * 2

    check(f, lambda: (torch.ones(2, requires_grad=True),), graphs=1, breaks=0)
