"""Time of a guard check that holds: two arguments, and networks of many layers, with and without changes between calls.

Run with graphlift_guards on the path (build/modules). Without torch, modules of the same shape stand in for torch's.
Tensor checks are not part of it: each parameter gets a type guard and is fetched.
"""

import statistics
import sys

import graphlift_guards as gg

try:
    from torch import nn
except ImportError:
    nn = None

HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


class Module:
    """What torch's modules look like to a guard."""

    def __init__(self, parameters, modules):
        self._parameters = dict(parameters)
        self._buffers = {}
        self._modules = dict(modules)
        for name in HOOKS:
            setattr(self, name, {})
        self.training = True


class Layer(Module):
    """A layer with a weight and a bias."""

    def __init__(self):
        super().__init__({"weight": [0.0], "bias": [0.0]}, {})


def network(depth):
    """A sequence of layers."""
    if nn is not None:
        return nn.Sequential(*[nn.Linear(2, 2) for _ in range(depth)])
    return Module({}, {str(i): Layer() for i in range(depth)})


def guard_module(guards, where, module):
    """Guard what calling the module and its submodules reads; return the parameters' origins."""
    guards.add(where, "TypeIs", type(module))
    attributes = guards.child(where, "InstanceDict")

    def attribute(name):
        return guards.child(attributes, "DictItem", name)

    guards.add(attribute("training"), "Equals", module.training)
    for name in HOOKS:
        guards.add(attribute(name), "Length", number=0)
    forward = guards.child(guards.root("Constant", key=type(module)), "TypeAttr", "__init__")
    guards.add(forward, "Is", type(module).__init__)
    guards.add(attributes, "LacksKey", "forward")
    parameters = []
    for name, value in module._parameters.items():
        parameter = guards.child(attribute("_parameters"), "DictItem", name)
        guards.add(parameter, "TypeIs", type(value))
        parameters.append(parameter)
    guards.add(attribute("_modules"), "KeysAre", tuple(module._modules))
    for name, child in module._modules.items():
        parameters += guard_module(guards, guards.child(attribute("_modules"), "DictItem", name), child)
    return parameters


def two_arguments():
    """f(x, y): a type guard on each, both fetched."""
    guards = gg.Guards()
    arguments = [guards.root("Local", i) for i in range(2)]
    for argument in arguments:
        guards.add(argument, "TypeIs", list)
    return guards.tree(arguments)


def report(words, nanoseconds):
    """Print one line of the table."""
    print(f"{words:62} {nanoseconds:9.0f} ns")


def changing(tree, names, change, times=2000):
    """Time of a check after a change of what it looks at, the median."""
    taken = []
    for i in range(times):
        change(i)
        taken.append(tree.time((), names, 1, 1))
    return statistics.median(taken)


def main():
    """Print the table."""
    print(f"Python {sys.version.split()[0]}, modules of {'torch' if nn else 'this file'}")
    report("two arguments", two_arguments().time(([], [])))
    for depth in (64, 75):
        module = network(depth)
        guards = gg.Guards()
        fetches = guard_module(guards, guards.root("Local"), module)
        tree = guards.tree(fetches)
        report(f"{depth} layers, {len(fetches)} parameters, {tree.guard_count()} guards", tree.time((module,)))

    names = {"module": network(64)}
    guards = gg.Guards()
    fetches = guard_module(guards, guards.child(guards.root("Globals"), "DictItem", "module"), names["module"])
    tree = guards.tree(fetches)
    layer = names["module"]._modules["5"]
    report("64 layers in a global", tree.time((), names))
    report("the same, another global set before each check", changing(tree, names, lambda i: names.update(step=i)))
    report(
        "the same, an attribute of a layer set before each check",
        changing(tree, names, lambda i: setattr(layer, "counter", i)),
    )

    modules = [network(64), network(64)]
    guards = gg.Guards()
    tree = guards.tree(guard_module(guards, guards.root("Local"), modules[0]))
    taken = [tree.time((modules[i % 2],), None, 1, 1) for i in range(2000)]
    report("64 layers, two networks in turn", statistics.median(taken))


if __name__ == "__main__":
    main()
