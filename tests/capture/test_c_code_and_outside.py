"""C code that iterates over, calls or compares what it is given: nothing outside is used up, changed or read unseen."""

import contextvars
import functools
import itertools

import torch
from judging import check, same

import graphlift


def vector(*numbers):
    return torch.tensor([float(n) for n in numbers], requires_grad=True)


def changes(function, change, argument=None):
    """Compiled and eager agree before and after `change()`; returns how many graphs there are."""
    graphlift.reset()
    compiled = graphlift.compile(function)
    argument = torch.ones(2) if argument is None else argument
    for _ in range(2):
        same(compiled(argument), function(argument))
    change()
    same(compiled(argument), function(argument))
    return graphlift.graph_count()


def test_a_generator_from_before_the_break_goes_on():
    def f(x):
        numbers = (k * 2 for k in range(4))
        first = next(numbers)
        graphlift.graph_break()
        return x * first + sum(numbers), x

    check(f, lambda: (vector(1),))


def test_generators_from_outside_reach_c_code_whole():
    def f(x, n):
        numbers = (k for k in range(n))
        letters = iter([1.0, 2.0, 3.0])
        graphlift.graph_break()
        pairs = list(zip(numbers, letters, strict=False))
        rest = [*letters]
        return x * len(pairs), pairs, rest

    check(f, lambda: (vector(1), 2))


def test_star_arguments_from_a_generator_behind_a_break():
    def shapes(*sizes):
        graphlift.graph_break()
        return sum(sizes)

    def f(x, y):
        total = shapes(*(t.shape[0] for t in (x, y)))
        return x * total

    check(f, lambda: (vector(1), vector(1, 2, 3)))


def test_iterators_from_outside_in_other_iterators():
    def f(x, how):
        it = iter([1, 2, 3, 4])
        graphlift.graph_break()
        if how == 0:
            got = list(itertools.chain([0], it))
        elif how == 1:
            got = list(map(str, it))
        elif how == 2:
            got, *_ = it
        elif how == 3:
            got = set()
            got.update(it)
            got = sorted(got)
        else:
            got = dict(enumerate(it))
        return x * 2, got, list(it)

    for how in range(5):
        check(f, lambda how=how: (vector(1), how))


def test_c_callables_given_to_c_code_change_nothing():
    log = []

    def f(x):
        list(map(log.append, [1, 2]))
        return x * len(log)

    compiled = graphlift.compile(f)
    assert [compiled(torch.ones(1)).item() for _ in range(3)] == [2, 4, 6] and log == [1, 2] * 3


def test_c_callables_given_to_c_code_read_what_is_guarded():
    table = {"a": 2, "b": 1}
    function = lambda x: (x * len(table), sorted(["a", "b"], key=table.get), max(["a", "b"], key=table.__getitem__))  # noqa: E731
    changes(function, lambda: table.update(a=0))


def test_nested_containers_are_guarded():
    for function in (
        lambda x, lists: x * len(list(itertools.chain.from_iterable(lists))),
        lambda x, lists: x * sum(map(len, lists)),
        lambda x, lists: x * sorted(lists)[0][0],
        lambda x, lists: (x, [list(pair) for pair in itertools.starmap(zip, [lists])]),
        lambda x, lists: x * len([key for key, group in itertools.groupby(lists)]),
    ):
        lists = [[3, 1], [2, 5]]

        def change(lists=lists):
            lists[0].insert(0, 1)

        changes(lambda x, function=function, lists=lists: function(x, lists), change)


def test_cached_functions_answer_from_their_cache():
    calls = []

    @functools.lru_cache
    def costly(name, by=1):
        calls.append(name)
        return open(__file__).read(1) and len(name) * by

    assert costly("abc") == 3 and costly("abc", by=2) == 6
    del calls[:]
    function = lambda x: x * costly("abc") + costly("abc", by=2)  # noqa: E731
    counts = check(function, lambda: (vector(1),), graphs=1, breaks=0)
    assert counts["graphs"] == 1 and not calls


def test_another_answer_in_the_cache_is_seen():
    setting = [2]

    @functools.lru_cache(maxsize=None)
    def value():
        return setting[0]

    def change():
        setting[0] = 5
        value.cache_clear()
        value()

    value()
    assert changes(lambda x: x * value(), change) == 2


VARIABLE = contextvars.ContextVar("VARIABLE", default=3)
EMPTY = contextvars.ContextVar("EMPTY")


def test_context_variables_are_guarded():
    assert changes(lambda x: x * VARIABLE.get(), lambda: VARIABLE.set(4)) == 2
    assert changes(lambda x: x * EMPTY.get(7), lambda: EMPTY.set(2)) == 2


def test_breaks_inside_of_comprehensions():
    def part(x, k):
        graphlift.graph_break()
        return x * k

    def f(x):
        as_list = [part(x, k) for k in range(3)]
        as_dict = {k: part(x, k) for k in range(3)}
        as_set = {part(x, k).shape[0] + k for k in range(3)}
        as_tuple = (*[part(x, 1)], *[part(x, 2)])
        return as_list, as_dict, as_set, as_tuple

    check(f, lambda: (vector(1, 2),), calls=4)


def test_appending_asks_nothing_of_a_list():
    log = []

    def f(x):
        log.append(x.shape[0])
        log.append("end")
        return x * 2

    compiled = graphlift.compile(f)
    for _ in range(5):
        compiled(torch.ones(3))
    assert log == [3, "end"] * 5 and graphlift.graph_count() == 1


def test_a_list_that_was_appended_to_is_read():
    def f(x, items):
        items.append(4)
        total = len(items), items[-1], items[0], sum(items), items.index(4), 4 in items, list(items), tuple(items)
        items.append(total[0])
        return x * items[-1], total, items

    check(f, lambda: (vector(1), [1, 2]), graphs=1, breaks=0)
