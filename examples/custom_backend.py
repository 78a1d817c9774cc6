"""A backend of one's own: a callable that gets each captured graph and returns what runs it.

    python examples/custom_backend.py

The graph is a torch.fx.GraphModule with the calls as the program makes them; it runs under autograd. The first backend
here says what is in a graph and runs it as it is; the second one rewrites it: a product with two becomes a sum; the
third one runs it call by call and adds up the time of each kind. With options={"graph_level": "aten"} a backend gets
operators of aten instead, forward and backward apart. Exits non-zero when a result differs from eager's, or when a
backend did not do its work.
"""

import collections
import operator
import sys
import time

import torch

import graphlift


def calls(module):
    return collections.Counter(name_of(node) for node in module.graph.nodes if "call" in node.op)


def name_of(node):
    return getattr(node.target, "__name__", node.target)


def telling(module, example_inputs):
    counts = ", ".join(f"{count} x {name}" for name, count in calls(module).most_common(4))
    print(f"graph of {len(example_inputs)} inputs: {counts}, ...")
    return module.forward


def doubling(module, example_inputs):
    """x * 2 becomes x + x."""
    before = calls(module)["mul"]
    for node in list(module.graph.nodes):
        if node.target is operator.mul and node.args[1] == 2:
            with module.graph.inserting_before(node):
                node.replace_all_uses_with(module.graph.call_function(operator.add, (node.args[0],) * 2))
            module.graph.erase_node(node)
    module.recompile()
    rewritten[0] += before - calls(module)["mul"]
    return module.forward


def timing(module, example_inputs):
    class Stopwatch(torch.fx.Interpreter):
        def run_node(self, node):
            begin = time.perf_counter()
            result = super().run_node(node)
            if "call" in node.op:
                seconds[name_of(node)] += time.perf_counter() - begin
            return result

    return Stopwatch(module).run


rewritten = [0]
seconds = collections.Counter()


def main():
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
    x = torch.randn(16, 32)

    def doubled(x):
        return plain(x) * 2

    def loss_and_gradients(function):
        loss = function(x).square().mean()
        return [loss, *torch.autograd.grad(loss, list(plain.parameters()))]

    want = loss_and_gradients(doubled)
    failures = []
    for backend in (telling, doubling, timing):
        graphlift.reset()
        compiled = graphlift.compile(doubled, backend=backend)
        for _ in range(2):
            got = loss_and_gradients(compiled)
            if not all(torch.allclose(a, b, atol=1e-6) for a, b in zip(got, want, strict=True)):
                failures.append(f"{backend.__name__} differs from eager")
        if graphlift.graph_count() != 1:
            failures.append(f"{graphlift.graph_count()} regions instead of one")
    if rewritten[0] == 0:
        failures.append("nothing was rewritten")
    for name, spent in seconds.most_common(3):
        print(f"{spent * 1e6:8.0f} us in {name}")
    if not seconds:
        failures.append("no operator was timed")
    print("\n".join(failures) or "equal to eager with each of the three backends")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
