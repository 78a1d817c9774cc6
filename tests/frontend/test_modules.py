"""Compiled modules are drop-ins: class, state, names, modes, hooks, copies and pickles are the plain module's."""

import copy
import gc
import io
import pickle
import weakref

import pytest
import torch

import graphlift

ONES = torch.ones(1, 2)


class Net(torch.nn.Module):
    made = []

    def __init_subclass__(cls, *, needed, **kwargs):
        Net.made.append(cls)

    def __init__(self):
        super().__init__()
        self.lin, self.scale = torch.nn.Linear(2, 2), 2.0

    def forward(self, x):
        return self.lin(x) * self.scale if self.training else x * 0

    def helper(self):
        return self.scale + 1

    def clone(self):
        return type(self)()


class Calls(torch.nn.Module):
    def __call__(self, x):
        return super().__call__(x) + 100

    def forward(self, x):
        return x


def test_is_still_that_module():
    net = Net()
    fn = graphlift.compile(net)
    assert isinstance(fn, Net) and fn is not net and not Net.made
    assert type(fn).__name__ == "Net" and repr(fn) == repr(net)
    base = fn(ONES)
    assert fn.scale == 2.0 and fn.helper() == 3.0 and fn.lin is net.lin
    fn.scale = 4.0
    torch.testing.assert_close(fn(ONES), base * 2)
    net.scale = 6.0
    torch.testing.assert_close(fn(ONES), base * 3)
    assert fn.eval() is fn and not net.training and not net.lin.training and fn(ONES).abs().sum() == 0
    assert fn.train() is fn and fn.to(torch.float64) is fn and fn(ONES.double()).dtype == torch.float64
    assert [id(p) for p in fn.parameters()] == [id(p) for p in net.parameters()]
    assert "_graphlift_state" not in net.__dict__
    assert fn._orig_mod is net


def test_names():
    def build():
        return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))

    plain, fn = build(), graphlift.compile(build())
    assert list(fn.state_dict()) == list(plain.state_dict())
    assert [k for k, _ in fn.named_parameters()] == [k for k, _ in plain.named_parameters()]
    plain.load_state_dict(fn.state_dict())
    fn.load_state_dict(build().state_dict())
    outer = torch.nn.Module()
    outer.body = fn
    assert list(outer.state_dict()) == ["body." + k for k in plain.state_dict()]
    assert len(fn) == 2 and fn[0] is fn._orig_mod[0]


def test_hooks_see_the_drop_in():
    net = Net()
    fn = graphlift.compile(net)
    want, seen = net(ONES), []
    torch.testing.assert_close(fn(ONES), want)
    first = fn.register_forward_pre_hook(lambda m, args: seen.append(m))
    second = net.register_forward_hook(lambda m, args, out: out * 10)
    torch.testing.assert_close(fn(ONES), want * 10)
    assert seen and all(m is fn for m in seen)
    first.remove()
    second.remove()
    everywhere = torch.nn.modules.module.register_module_forward_hook(lambda m, args, out: out - 1 if m is fn else None)
    try:
        torch.testing.assert_close(fn(ONES), want - 1)
    finally:
        everywhere.remove()
    torch.testing.assert_close(fn(ONES), want)


def test_own_forward_and_own_call():
    net = Net()
    fn = graphlift.compile(net)
    fn(ONES)
    net.forward = lambda x: x + 5
    assert fn(ONES).tolist() == [[6.0, 6.0]]
    del net.forward
    torch.testing.assert_close(fn(ONES), net(ONES))
    assert graphlift.compile(Calls())(ONES).tolist() == [[101.0, 101.0]]


def test_forward_compiled_in_the_class():
    class Inner(torch.nn.Module):
        @graphlift.compile
        def forward(self, x):
            return x * 2

    assert Inner()(ONES).tolist() == [[2.0, 2.0]]
    assert graphlift.compile(Inner())(ONES).tolist() == [[2.0, 2.0]]


def test_deepcopy_and_pickle():
    fn = graphlift.compile(Net(), dynamic=False)
    want = fn(ONES)
    for other in (copy.deepcopy(fn), pickle.loads(pickle.dumps(fn))):
        assert isinstance(other, Net) and other is not fn and other.lin is not fn.lin
        torch.testing.assert_close(other(ONES), want)
        other.scale = 0.0
        assert other._orig_mod.scale == 0.0 and fn.scale == 2.0
    shallow = copy.copy(fn)
    shallow.scale = 1.0
    assert shallow.lin is fn.lin and fn.scale == 2.0
    pair = copy.deepcopy([fn, fn._orig_mod])
    assert pair[0]._orig_mod is pair[1]
    file = io.BytesIO()
    torch.save(fn, file)
    file.seek(0)
    torch.testing.assert_close(torch.load(file, weights_only=False)(ONES), want)


def test_instances_that_the_module_makes_of_its_own_class():
    fn = graphlift.compile(Net())
    clone = fn.clone()
    torch.testing.assert_close(clone(ONES), clone.lin(ONES) * 2)
    torch.testing.assert_close(graphlift.compile(clone)(ONES), clone(ONES))
    other = pickle.loads(pickle.dumps(clone))
    torch.testing.assert_close(other(ONES), clone(ONES))
    assert type(copy.deepcopy(clone)) is Net


def test_compiled_submodules():
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = graphlift.compile(torch.nn.Linear(2, 2))

        def forward(self, x):
            return self.body(x) + 1

    net = Outer()
    want = net.body._orig_mod(ONES) + 1
    torch.testing.assert_close(net(ONES), want)
    torch.testing.assert_close(graphlift.compile(net)(ONES), want)
    assert list(net.state_dict()) == ["body.weight", "body.bias"]


def test_training_step_reaches_both():
    net = Net()
    fn = graphlift.compile(net)
    optimizer = torch.optim.SGD(fn.parameters(), lr=0.1)
    before = net.lin.weight.detach().clone()
    fn(ONES).sum().backward()
    optimizer.step()
    assert not torch.equal(before, net.lin.weight)
    fn.zero_grad()
    assert net.lin.weight.grad is None


def test_compile_of_compiled_and_of_script():
    net = Net()
    fn = graphlift.compile(graphlift.compile(net), dynamic=True)
    assert fn._orig_mod is net
    torch.testing.assert_close(fn(ONES), net(ONES))


def test_disabled_module():
    net = Net()
    plain = graphlift.disable(net)
    assert isinstance(plain, Net) and list(plain.state_dict()) == list(net.state_dict())
    assert type(plain).__call__._graphlift_disable is True
    torch.testing.assert_close(plain(ONES), net(ONES))
    assert graphlift.compile(plain) is plain
    assert type(copy.deepcopy(plain)).__call__._graphlift_disable is True


def test_everything_goes():
    def make():
        class Local(Net, needed=1):
            pass

        net = Local()
        fn = graphlift.compile(net)
        fn(ONES).sum().backward()
        return [weakref.ref(thing) for thing in (net, fn, net.lin.weight, Local, type(fn))]

    refs = make()
    Net.made.clear()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 5


@pytest.mark.parametrize("kind", [torch.nn.ModuleList, torch.nn.ModuleDict])
def test_containers(kind):
    fn = graphlift.compile(kind())
    assert isinstance(fn, kind) and len(fn) == 0


@pytest.mark.parametrize("how", [graphlift.compile, graphlift.disable])
def test_parametrized_behind_compile(how):
    """A parametrization gives the plain module another class, with the attribute that was a parameter."""
    modules = [torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)]
    modules[1].load_state_dict(modules[0].state_dict())
    callables, x = [modules[0], how(modules[1])], torch.randn(4, 2)

    def equal():
        results = [f(x) for f in callables]
        for result, module in zip(results, modules, strict=True):
            module.zero_grad()
            result.pow(2).sum().backward()
        torch.testing.assert_close(*results)
        for a, b in zip(modules[0].parameters(), modules[1].parameters(), strict=True):
            torch.testing.assert_close(a.grad, b.grad)

    equal()
    for module in modules:
        torch.nn.utils.parametrizations.weight_norm(module)
    equal()
    for module in modules:
        torch.nn.utils.parametrize.remove_parametrizations(module, "weight")
    equal()
    assert how is graphlift.disable or graphlift.graph_count() >= 2
