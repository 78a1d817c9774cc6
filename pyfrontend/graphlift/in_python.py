"""Functions that CPython has in C, said again in Python.

The evaluator runs these while capturing, so that what they read of objects from outside is guarded like the program's
own reads.
"""

import collections
import copyreg


def reduce_ex(self, protocol, slots):
    """object.__reduce_ex__(self, protocol) for protocols 2 and up; `slots` is what copyreg says of type(self)."""
    cls = type(self)
    reduce = getattr(self, "__reduce__", None)
    if cls.__reduce__ is not object.__reduce__:
        for base, parts in _CONTAINERS:
            if cls.__reduce__ is base.__reduce__:
                return cls, *parts(self, _state(self, slots))
        return reduce()
    call, args = copyreg.__newobj__, (cls,)
    if (new_args := getattr(self, "__getnewargs_ex__", None)) is not None:
        args, kwargs = new_args()
        call, args = (copyreg.__newobj_ex__, (cls, args, kwargs)) if kwargs else (call, (cls, *args))
    elif (new_args := getattr(self, "__getnewargs__", None)) is not None:
        args = (cls, *new_args())
    state = _state(self, slots) if cls.__getstate__ is object.__getstate__ else self.__getstate__()
    items = iter(self) if isinstance(self, list) else None
    pairs = iter(self.items()) if isinstance(self, dict) else None
    return call, args, state, items, pairs


# How containers in C reduce: arguments of the class, state, items, pairs.
_CONTAINERS = (
    (set, lambda self, state: ((list(self),), state)),
    (collections.OrderedDict, lambda self, state: ((), state, None, iter(self.items()))),
    (collections.defaultdict, lambda self, state: (_factory(self), None, None, iter(self.items()))),
    (collections.deque, lambda self, state: (() if self.maxlen is None else ((), self.maxlen), state, iter(self))),
)


def _factory(self):
    return () if self.default_factory is None else (self.default_factory,)


def _state(self, slots):
    try:
        state = object.__getattribute__(self, "__dict__") or None
    except AttributeError:
        state = None
    values = {}
    for name in slots:
        try:
            values[name] = getattr(self, name)
        except AttributeError:
            pass
    return (state, values) if values else state
