"""Programs with tensors, modules and torch's state around them, and what changes those between calls."""

import dataclasses
import gc
import logging
import operator
import sys

import numpy as np
import torch
from surroundings import Plain, case


@case
def nparr():
    a = np.array([1.0])
    return (lambda x: x + float(a[0])), (lambda i: a.__setitem__(0, i))


@case
def npsc():
    h = [np.float32(1)]
    return (lambda x: x + h[0]), (lambda i: h.__setitem__(0, np.float32(i)))


@case
def tens():
    t = torch.ones(2)
    return (lambda x: x + t), (lambda i: t.fill_(i))


@case
def tensshape():
    h = [torch.ones(2)]
    return (lambda x: x + h[0].sum()), (lambda i: h.__setitem__(0, torch.ones(i + 2)))


@case
def tdtype():
    h = [torch.ones(2)]
    return (lambda x: x + h[0]), (lambda i: h.__setitem__(0, torch.ones(2, dtype=torch.float64)))


@case
def treq():
    t = torch.ones(2)
    return (lambda x: x + t), (lambda i: t.requires_grad_(True))


@case
def tattr():
    t = torch.ones(2)
    t.tag = 1
    return (lambda x: x + t.tag), (lambda i: setattr(t, "tag", i))


@case
def tdata():
    t = torch.ones(2)
    return (lambda x: x + t.sum()), (lambda i: setattr(t, "data", torch.ones(i + 3)))


@case
def tgrad():
    t = torch.ones(2, requires_grad=True)
    return (lambda x: x + (0 if t.grad is None else 5)), (lambda i: setattr(t, "grad", torch.ones(2)))


@case
def tview():
    b = torch.zeros(4)
    v = b[:2]
    return (lambda x: x + v), (lambda i: b.fill_(i))


@case
def mtrain():
    m = torch.nn.Dropout(1.0)
    return (lambda x: m(x)), (lambda i: m.train(i % 2 == 0))


@case
def mparam():
    m = torch.nn.Linear(2, 2)
    return (lambda x: m(x)), (lambda i: setattr(m, "weight", torch.nn.Parameter(torch.ones(2, 2) * i)))


@case
def mbias():
    m = torch.nn.Linear(2, 2)
    return (lambda x: m(x)), (lambda i: setattr(m, "bias", None))


@case
def mhook():
    m = torch.nn.Identity()
    return (lambda x: m(x)), (lambda i: m.register_forward_hook(lambda s, a, o, i=i: o * i))


@case
def mprehook():
    m = torch.nn.Identity()
    return (lambda x: m(x)), (lambda i: m.register_forward_pre_hook(lambda s, a, i=i: (a[0] * i,)))


@case
def mgh():
    m = torch.nn.Identity()
    hs = []

    def mut(i):
        while hs:
            hs.pop().remove()
        if i < 3:
            hs.append(torch.nn.modules.module.register_module_forward_hook(lambda s, a, o, i=i: o * i))

    return (lambda x: m(x)), mut


@case
def mseq():
    m = torch.nn.Sequential(torch.nn.Identity())
    return (lambda x: m(x)), (lambda i: m.append(torch.nn.Hardtanh(0, 0.1 * i)))


@case
def mcfg():
    m = torch.nn.LeakyReLU(0.1)
    return (lambda x: m(-x)), (lambda i: setattr(m, "negative_slope", 0.1 * i))


@case
def mbuf():
    m = torch.nn.BatchNorm1d(2).eval()
    return (lambda x: m(x.view(1, 2))), (lambda i: m.running_mean.fill_(i))


@case
def mfwd():
    m = torch.nn.Identity()
    return (lambda x: m(x)), (lambda i: setattr(m, "forward", lambda x, i=i: x * i))


@case
def ddtype():
    return (lambda x: torch.ones(2)), (lambda i: torch.set_default_dtype(torch.float64 if i % 2 else torch.float32))


@case
def gmode():
    w = torch.ones(2, requires_grad=True)
    return (lambda x: x * w), (lambda i: torch.set_grad_enabled(i % 2 == 0))


@case
def logl():
    row = logging.getLogger("mutz")
    row.setLevel(40)
    return (lambda x: x + row.isEnabledFor(20)), (lambda i: row.setLevel(10))


@case
def monkey():
    import math

    keep = math.sqrt
    return (lambda x: x + math.sqrt(4)), (lambda i: setattr(math, "sqrt", (lambda v, i=i: i) if i < 3 else keep))


@case
def monkeyF():
    import torch.nn.functional as F

    keep = F.relu
    return (lambda x: F.relu(-x)), (lambda i: setattr(F, "relu", (lambda v, i=i: v * i) if i < 3 else keep))


@case
def builtin_shadow():
    g = {"torch": torch}
    exec("def f(x): return x*len([1,2])", g)
    return g["f"], (lambda i: g.update(len=lambda a, i=i: i))


@case
def namedslice():
    row = [slice(0, 1)]
    L = [1, 2, 3, 4]
    return (lambda x: x + sum(L[row[0]])), (lambda i: row.__setitem__(0, slice(0, i)))


@case
def getter():
    row = [operator.itemgetter(0)]
    L = [1, 2, 3, 4, 9]
    return (lambda x: x + row[0](L)), (lambda i: row.__setitem__(0, operator.itemgetter(i)))


@case
def objid():
    a, b = Plain(1), Plain(2)
    h = [a]
    return (lambda x: x + (1 if h[0] is a else 2)), (lambda i: h.__setitem__(0, b))


@case
def nestedf():
    d = {"a": {"b": [Plain(1)]}}
    return (lambda x: x + d["a"]["b"][0].v), (lambda i: d["a"]["b"].__setitem__(0, Plain(i)))


@case
def sortk():
    row = [3, 1, 2]
    return (lambda x: x + sorted(row)[0]), (lambda i: row.append(-i))


@case
def strf():
    o = Plain(1)
    return (lambda x: x + len(f"{o.v}")), (lambda i: setattr(o, "v", 10**i))


@case
def dclass():
    @dataclasses.dataclass
    class C:
        v: int = 1

    c = C()
    return (lambda x: x + c.v), (lambda i: setattr(c, "v", i))


@case
def tupt():
    h = [(1, torch.ones(2))]
    return (lambda x: x + h[0][0] * h[0][1]), (lambda i: h.__setitem__(0, (i, torch.ones(2) * i)))


@case
def hidden():
    """A function that torch hides from its compiler, swapped behind the decorator."""
    functions = [lambda x: x + 1, lambda x: x + 2, lambda x: x + 3]
    decorated = torch._compile._disable_dynamo(functions[0])
    cell = decorated.__closure__[decorated.__code__.co_freevars.index("fn")]
    return (lambda x: decorated(x)), (lambda i: setattr(cell, "cell_contents", functions[i % 3]))


@case
def threads():
    now = torch.get_num_threads()
    return (lambda x: x + torch.get_num_threads()), (lambda i: torch.set_num_threads(1 if i % 2 else now))


@case
def recursion_limit():
    now = sys.getrecursionlimit()
    return (lambda x: x + sys.getrecursionlimit()), (lambda i: sys.setrecursionlimit(now + i % 2))


@case
def collector():
    return (lambda x: x + gc.isenabled()), (lambda i: gc.disable() if i % 2 else gc.enable())
