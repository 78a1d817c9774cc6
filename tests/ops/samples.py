"""The samples table: which generators give calls of which operators.

A generator takes a `Make` and yields `call(...)`s. Every row of the operator table must have at least one sample.
"""

from collections import defaultdict

TABLE = defaultdict(list)


def samples(*names):
    """Registers a generator for operators, named without "aten::"; a name without overload means default."""

    def register(generator):
        for group in names:
            for name in group.split():
                TABLE["aten::" + (name if "." in name else name + ".default")].append(generator)
        return generator

    return register
