"""Programs judged by eager: values, gradients, side effects and exceptions equal, and a region was really compiled."""

import copy
import functools
import inspect

import torch

import graphlift


def leaves(value):
    """The tensors in a result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return []


def same(got, want, where="result"):
    """Asserts that two results are equal, tensors within the dtype's tolerance."""
    if isinstance(want, torch.Tensor):
        assert type(got) is type(want), f"{where}: {type(got)} instead of {type(want)}"
        assert got.requires_grad == want.requires_grad, f"{where}: requires_grad is {got.requires_grad}"
        assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride(), where
        torch.testing.assert_close(got.detach(), want.detach(), equal_nan=True, msg=lambda text: f"{where}: {text}")
    elif isinstance(want, dict):
        assert type(got) is type(want) and list(got) == list(want), f"{where}: keys {list(got)}, not {list(want)}"
        for key in want:
            same(got[key], want[key], f"{where}[{key!r}]")
    elif isinstance(want, list | tuple):
        assert type(got) is type(want) and len(got) == len(want), f"{where}: {got} instead of {want}"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            same(g, w, f"{where}[{i}]")
    else:
        assert type(got) is type(want) and got == want, f"{where}: {got!r} instead of {want!r}"


def regions(graphs, breaks):
    """Asserts how many regions and breaks there were since the last reset."""
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"]) == (graphs, breaks), counts


def run_once(function, make):
    """Result (or exception), arguments behind the call, and gradients of one call and backward."""
    torch.manual_seed(0)
    args = make()
    parameters = [leaf for leaf in leaves(args) if leaf.requires_grad and leaf.is_leaf]
    try:
        result = function(*args)
    except Exception as error:
        return {"error": (type(error).__name__, str(error)), "args": args}
    scalars = [leaf.float().pow(2).sum() for leaf in leaves(result) if leaf.requires_grad]
    if scalars:
        sum(scalars).backward()
    return {"result": result, "args": args, "grads": [p.grad for p in parameters]}


def check(function, make, *, calls=3, graphs=None, breaks=None):
    """Runs `function` on make() in eager and compiled, `calls` times, and compares everything; returns the counters.

    graphs, breaks: how many regions and graph breaks there must be; by default at least one region and any breaks.
    make: gets the number of the call when it wants an argument.
    """
    graphlift.reset()
    compiled = graphlift.compile(function)
    for k in range(calls):
        wants = any(p.default is p.empty for p in inspect.signature(make).parameters.values())
        arguments = functools.partial(make, k) if wants else make
        same(run_once(compiled, arguments), run_once(function, arguments))
    counts = graphlift.counters()
    assert counts["internal_errors"] == 0 and counts["given_up"] == 0, counts
    assert counts["graphs"] >= 1 if graphs is None else counts["graphs"] == graphs, counts
    assert breaks is None or counts["graph_breaks"] == breaks, counts
    assert calls == 1 or counts["hits"] >= 1, f"no later call hit a region: {counts}"
    return counts


def check_module(make_module, make_input, *, train=True, calls=3, graphs=1, breaks=0):
    """As check, for a module: outputs, parameter gradients and buffers over several calls."""
    torch.manual_seed(0)
    plain = make_module().train(train)
    other = copy.deepcopy(plain)
    graphlift.reset()
    compiled = graphlift.compile(other)
    for k in range(calls):
        torch.manual_seed(k)
        inputs = make_input()
        torch.manual_seed(100 + k)
        want = plain(*inputs)
        torch.manual_seed(100 + k)
        got = compiled(*inputs)
        same(got, want)
        for module, result in ((plain, want), (compiled, got)):
            module.zero_grad()
            scalars = [leaf.float().pow(2).mean() for leaf in leaves(result) if leaf.requires_grad]
            if scalars:
                sum(scalars).backward()
        same([p.grad for p in compiled.parameters()], [p.grad for p in plain.parameters()], "gradients")
        same(list(compiled.buffers()), list(plain.buffers()), "buffers")
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"]) == (graphs, breaks), counts
    assert counts["hits"] >= calls - graphs, counts
    return counts
