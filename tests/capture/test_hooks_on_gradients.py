"""Hooks on gradients and on what autograd saves: right order and values, in the region's own backward and behind it."""

import pytest
import torch
from judging import check, regions, same
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks

import graphlift

pytestmark = pytest.mark.without_passes


def leaf(k=0):
    return (torch.tensor([1.0, -2.0, 3.0]) + k).requires_grad_()


def pair(k=0):
    return leaf(k), (torch.tensor([0.5, 4.0, -1.0]) - k).requires_grad_()


# --- the backward runs behind the region ------------------------------------------------------------------------------


def scaled(x, y):
    z = x * y
    z.register_hook(lambda gradient: gradient * 3)
    return (z * z).sum()


def clipped(x, y):
    z = (x * y).sin()
    z.register_hook(lambda gradient: gradient.clamp(-0.5, 0.5))
    return (z.exp() * x).sum()


def several(x, y):
    z = x * y
    z.register_hook(lambda gradient: gradient + 1)
    z.register_hook(lambda gradient: gradient * 2)
    return z.sin().sum()


def nothing_returned(x, y):
    z = x * y
    z.register_hook(lambda gradient: None)
    return z.exp().sum()


def removed(x, y):
    z = x * y
    handle = z.register_hook(lambda gradient: gradient * 3)
    kept = z.register_hook(lambda gradient: gradient + 2)
    handle.remove()
    del kept
    return z.sin().sum()


def within(x, y):
    z = x * y
    with z.register_hook(lambda gradient: gradient * 3):
        w = z * 2
    return (w * z).sum()


def on_two(x, y):
    a, b = x * 2, y * 3
    for value in (a, b):
        value.register_hook(lambda gradient, factor=value.detach(): gradient * factor)
    return (a * b).sum(), b.exp()


def of_what_is_written(x, y):
    z = x * y
    z.register_hook(lambda gradient: gradient * 3)
    z.mul_(2)
    z.register_hook(lambda gradient: gradient + 1)
    return (z * x).sum()


def on_a_leaf_made_inside(x, y):
    w = x.detach().requires_grad_()
    w.register_hook(lambda gradient: gradient * 3)
    return (w * y).sum()


@pytest.mark.parametrize(
    "program",
    [scaled, clipped, several, nothing_returned, removed, within, on_two, of_what_is_written, on_a_leaf_made_inside],
    ids=lambda f: f.__name__,
)
def test_hooks_of_values_are_in_the_backward(program):
    check(program, pair, graphs=1, breaks=0)


def test_one_of_two_results_goes_backward():
    compiled = graphlift.compile(on_two)
    for which in (0, 1, 0):
        args, twins = pair(), pair()
        compiled(*args)[which].sum().backward()
        on_two(*twins)[which].sum().backward()
        same([a.grad for a in args], [t.grad for t in twins])
    regions(1, 0)


def returned(x, y):
    z = x * y
    z.register_hook(lambda gradient: gradient * 3)
    return z


def handle_returned(x, y):
    z = x * y
    handle = z.register_hook(lambda gradient: gradient * 3)
    return (z * 2).sum(), handle


def test_what_escapes_with_a_hook_is_eagers():
    for program in (returned, handle_returned):
        compiled = graphlift.compile(program)
        for _ in range(2):
            args, twins = pair(), pair()
            for f, given in ((compiled, args), (program, twins)):
                result = f(*given)
                (result[0] if isinstance(result, tuple) else result.sum()).backward()
            same([a.grad for a in args], [t.grad for t in twins])


def test_what_a_hook_does_besides_is_done_by_each_backward():
    class Notes:
        def __init__(self):
            self.count, self.last, self.cell = 0, None, 0

    def outside(x, y, notes, texts):
        z = x * y
        z.register_hook(lambda gradient: texts.append("hook"))
        return (z * 2).sum()

    def attribute(x, y, notes, texts):
        def hook(gradient):
            notes.count += 1
            notes.last = gradient.detach()

        z = x * y
        z.register_hook(hook)
        return (z * 2).sum()

    def fresh(x, y, notes, texts):
        seen = []

        def hook(gradient):
            seen.append(len(seen))
            return gradient * (len(seen) + 1)

        z = x * y
        z.register_hook(hook)
        texts.append(seen)
        return (z * 2).sum()

    def own_cell(x, y, notes, texts):
        times = 0

        def hook(gradient):
            nonlocal times
            times += 1
            return gradient * times

        z = x * y
        z.register_hook(hook)
        return (z * 2).sum()

    def tensor_of_the_region(x, y, notes, texts):
        z, total = x * y, torch.zeros(3)
        z.register_hook(lambda gradient: (total.add_(gradient), None)[1])
        texts.append(total)
        return (z * 2).sum()

    def tensor_from_outside(x, y, notes, texts):
        z = x * y
        z.register_hook(lambda gradient: (notes.total.add_(gradient), None)[1])
        return (z * 2).sum()

    def account(function):
        notes, texts, (x, y) = Notes(), [], pair()
        notes.total = torch.zeros(3)
        loss = function(x, y, notes, texts)
        loss.backward(retain_graph=True)
        loss.backward()
        return [notes.count, notes.last, notes.total, texts, x.grad, y.grad]

    for program in (outside, attribute, fresh, own_cell, tensor_of_the_region, tensor_from_outside):
        graphlift.reset()
        compiled = graphlift.compile(program)
        for _ in range(2):
            same(account(compiled), account(program), program.__name__)
        assert graphlift.counters()["internal_errors"] == 0


# --- the backward runs in the region ----------------------------------------------------------------------------------


def test_hooks_of_values_in_a_backward_of_the_regions_own():
    def program(x, y, notes):
        z = x * y
        z.register_hook(lambda gradient: notes.append(gradient.sum()))
        z.register_hook(lambda gradient: gradient * 2)
        w = z.sin()
        w.register_hook(lambda gradient: notes.append("w"))
        w.sum().backward()
        return x.grad + 1

    compiled = graphlift.compile(program)
    for k in range(3):
        (x, y), twins = pair(k), pair(k)
        notes, want = [], []
        same(compiled(x, y, notes), program(*twins, want))
        same([notes, x.grad, y.grad], [want, twins[0].grad, twins[1].grad])
        assert [type(note) for note in notes] == [str, torch.Tensor]
    regions(1, 0)


def test_hooks_of_parameters_in_a_backward_of_the_regions_own():
    class Step:
        def __init__(self):
            self.net = nn.Linear(3, 2)
            with torch.no_grad():
                for p in self.net.parameters():
                    p.copy_(torch.linspace(-1, 1, p.numel()).view_as(p))
            self.seen = []
            self.net.weight.register_hook(lambda gradient: gradient * 0.5)
            self.net.bias.register_hook(lambda gradient: self.seen.append("bias"))
            for p in self.net.parameters():
                p.register_post_accumulate_grad_hook(self.update)

        def update(self, p):
            self.seen.append(p.grad.sum())
            with torch.no_grad():
                p.sub_(p.grad, alpha=0.1)
            p.grad = None

        def __call__(self, x):
            loss = self.net(x).pow(2).sum()
            loss.backward()
            return loss.detach()

    mine, eager = Step(), Step()
    compiled = graphlift.compile(mine.__call__)
    for k in range(4):
        x = torch.linspace(-1, 1, 6).reshape(2, 3) + k
        same(compiled(x), eager(x))
        same(list(mine.net.parameters()), list(eager.net.parameters()))
        same([p.grad for p in mine.net.parameters()], [None, None])
    assert len(mine.seen) == 12
    assert [type(s) for s in mine.seen] == [type(s) for s in eager.seen]
    same([s for s in mine.seen if s != "bias"], [s for s in eager.seen if s != "bias"])
    regions(1, 0)


def test_another_hook_is_another_region():
    def program(x):
        (x * x).sum().backward()
        return x.grad * 1

    compiled = graphlift.compile(program)
    x, twin = leaf(), leaf()
    handles = []
    for factor in (None, 2.0, 3.0, None):
        for tensor in (x, twin):
            if factor:
                handles.append(tensor.register_hook(lambda gradient, factor=factor: gradient * factor))
            tensor.grad = None
        if factor is None:
            for handle in handles:
                handle.remove()
        for _ in range(2):
            same(compiled(x), program(twin))
    counts = graphlift.counters()
    assert counts["graph_breaks"] == 0 and counts["graphs"] >= 3, counts


def test_hooks_of_leaves_whose_gradients_are_asked_for():
    def program(x, y):
        first, second = torch.autograd.grad((x * y).sum(), (x, y))
        return first * 2 + second

    def hooked(k):
        x, y = pair(k)
        x.register_hook(lambda gradient: gradient * 3)
        return x, y

    compiled = graphlift.compile(program)
    for k in range(3):
        same(compiled(*pair(k)), program(*pair(k)))
        same(compiled(*hooked(k)), program(*hooked(k)))
    assert graphlift.counters()["graph_breaks"] == 0


def bound_methods(x, y, notes):
    z, own = x * y, []
    z.register_hook(own.append)
    notes.append(own)
    return (z * 2).sum()


def test_a_method_of_a_container_as_a_hook():
    def account(function):
        (x, y), notes = pair(), []
        function(x, y, notes).backward()
        return notes, x.grad, y.grad

    compiled = graphlift.compile(bound_methods)
    for _ in range(2):
        same(account(compiled), account(bound_methods))


# --- hooks of modules -------------------------------------------------------------------------------------------------


class Watched(nn.Module):
    def __init__(self, seen):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)
        with torch.no_grad():
            for p in self.parameters():
                p.copy_(torch.linspace(-1, 1, p.numel()).view_as(p))
        self.second.register_full_backward_pre_hook(lambda m, gradients: (gradients[0] * 2,))
        self.first.register_full_backward_hook(lambda m, given, gradients: (given[0] * 3,))
        self.second.register_full_backward_hook(lambda m, given, gradients: seen.append(gradients[0].sum()))

    def forward(self, x):
        return self.second(self.first(x).tanh())


def test_full_backward_hooks_in_a_backward_of_the_regions_own():
    def step(net, x):
        loss = net(x).pow(2).sum()
        loss.backward()
        return loss.detach()

    seen, want = [], []
    mine, eager = Watched(seen), Watched(want)
    compiled = graphlift.compile(step)
    for k in range(3):
        xs = [(torch.linspace(-1, 1, 6).reshape(2, 3) + k).requires_grad_() for _ in range(2)]
        same(compiled(mine, xs[0]), step(eager, xs[1]))
        same([xs[0].grad, *(p.grad for p in mine.parameters())], [xs[1].grad, *(p.grad for p in eager.parameters())])
        same(seen, want)
    regions(2, 0)  # gradients are made, and added to


# --- what autograd saves ----------------------------------------------------------------------------------------------


def halves(x, y):
    with saved_tensors_hooks(lambda t: t.to(torch.float16), lambda t: t.float()):
        z = x.exp() * y
    return (z * x).sum()


def tuples(x, y):
    with saved_tensors_hooks(lambda t: (t.shape, t.flatten()), lambda packed: packed[1].view(packed[0])):
        z = (x * y).sin() * x
    return z.sum()


def nested(x, y):
    with saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        z = x.exp()
        with saved_tensors_hooks(lambda t: t + 1, lambda t: t - 1):
            z = z * y
        w = z.sin()
    return (w * z).sum()


def elsewhere(x, y):
    with save_on_cpu():
        z = x.sin() * y
    return (z.exp() * x).sum()


@pytest.mark.parametrize("program", [halves, tuples, nested, elsewhere], ids=lambda f: f.__name__)
def test_hooks_on_what_is_saved(program):
    check(program, pair, graphs=1, breaks=0)


def test_what_packing_does_besides_is_done_in_order():
    def program(x, y, notes):
        def pack(tensor):
            notes.append(tuple(tensor.shape))
            return tensor

        with saved_tensors_hooks(pack, lambda tensor: tensor):
            z = x.exp() * y
        notes.append("behind")
        return z.sum()

    compiled = graphlift.compile(program)
    for k in range(3):
        args, twins, notes, want = pair(k), pair(k), [], []
        compiled(*args, notes).backward()
        program(*twins, want).backward()
        same([notes, *(a.grad for a in args)], [want, *(t.grad for t in twins)])
    regions(1, 0)


def test_what_unpacking_does_besides_is_done_by_the_backward():
    def program(x, y, notes):
        with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: notes.append("unpacked") or tensor):
            z = x.exp() * y
        return z.sum()

    compiled = graphlift.compile(program)
    for k in range(2):
        args, twins, notes, want = pair(k), pair(k), [], []
        compiled(*args, notes).backward()
        program(*twins, want).backward()
        same([notes, *(a.grad for a in args)], [want, *(t.grad for t in twins)])


def test_a_break_within_goes_on_with_the_hooks():
    def program(x, y):
        with saved_tensors_hooks(lambda t: t * 2, lambda t: t / 4):
            z = x.exp()
            graphlift.graph_break("here")
            z = z * y
        return z.sum()

    check(program, pair)
