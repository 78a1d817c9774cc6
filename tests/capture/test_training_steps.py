"""A whole training step is one region: backward, gradients of parameters, the optimizer and its state, equal to eager."""

import copy
import functools

import pytest
import torch
from judging import regions, same
from torch.optim import SGD, Adagrad, Adam, AdamW, RMSprop

import graphlift

OPTIMIZERS = {
    "sgd": functools.partial(SGD, lr=0.1),
    "sgd_momentum": functools.partial(SGD, lr=0.1, momentum=0.9, weight_decay=0.01),
    "sgd_nesterov": functools.partial(SGD, lr=0.1, momentum=0.9, nesterov=True),
    "sgd_foreach": functools.partial(SGD, lr=0.1, momentum=0.9, foreach=True),
    "sgd_fused": functools.partial(SGD, lr=0.1, momentum=0.9, fused=True),
    "adam": functools.partial(Adam, lr=0.01),
    "adam_amsgrad": functools.partial(Adam, lr=0.01, amsgrad=True, weight_decay=0.01),
    "adam_maximize": functools.partial(Adam, lr=0.01, maximize=True),
    "adam_foreach": functools.partial(Adam, lr=0.01, foreach=True),
    "adamw": functools.partial(AdamW, lr=0.01),
    "adamw_foreach": functools.partial(AdamW, lr=0.01, foreach=True),
    "adamw_fused": functools.partial(AdamW, lr=0.01, fused=True),
    "rmsprop": functools.partial(RMSprop, lr=0.01, momentum=0.5),
    "rmsprop_foreach": functools.partial(RMSprop, lr=0.01, foreach=True, centered=True),
    "adagrad": functools.partial(Adagrad, lr=0.01),
    "adagrad_foreach": functools.partial(Adagrad, lr=0.01, foreach=True),
}


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))


def batch(number):
    generator = torch.Generator().manual_seed(number)
    return torch.randn(8, 4, generator=generator), torch.randn(8, 3, generator=generator)


def plain_step(model, optimizer):
    criterion = torch.nn.MSELoss()

    def step(x, y):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def train(make_step, make_optimizer, compiled, calls, after=None, backend="native"):
    model = make_model()
    optimizer = make_optimizer(model.parameters())
    step = make_step(model, optimizer)
    step = graphlift.compile(step, backend=backend) if compiled else step
    results = []
    more = after(optimizer) if after else None
    for number in range(calls):
        result = step(*batch(number))
        results.append([r.detach() if isinstance(r, torch.Tensor) else r for r in (result, model[0].bias.grad)])
        if more:
            more.step()
    parameters = list(model.parameters())
    return {
        "results": results,
        "parameters": [p.detach() for p in parameters],
        "gradients": [p.grad for p in parameters],
        "state": [dict(optimizer.state[p]) for p in parameters],
    }


def check_steps(make_step, make_optimizer, *, calls=50, graphs=2, after=None):
    """Equal to eager, without a break, and compiled again only while the first steps make gradients and state."""
    graphlift.reset()
    got = train(make_step, make_optimizer, True, calls, after)
    counts = graphlift.counters()
    same(got, train(make_step, make_optimizer, False, calls, after))
    assert counts["graph_breaks"] == 0 and counts["internal_errors"] == 0, counts
    assert 1 <= counts["graphs"] <= graphs and counts["hits"] == calls - counts["graphs"], counts
    return counts


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_one_region_and_eagers_state_after_50_steps(name):
    check_steps(plain_step, OPTIMIZERS[name])


@pytest.mark.parametrize("name", ["sgd_momentum", "adam", "adamw_foreach", "rmsprop", "adagrad"])
def test_a_scheduler_outside_compiles_once_more(name):
    def halve(optimizer):
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)

    check_steps(plain_step, OPTIMIZERS[name], calls=20, after=halve)


def test_state_of_parameters_of_many_sizes_has_fixed_sizes(logged):
    graphlift.set_logs("graph")
    model = torch.nn.Sequential(*[torch.nn.Linear(n, n + 1) for n in range(2, 6)])
    optimizer = Adam(model.parameters())

    @graphlift.compile
    def step(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    for _ in range(3):
        step(torch.ones(3, 2))
    graphs = logged("graph")
    assert len(graphs) == 2 and not any("s0" in graph for graph in graphs)


def test_gradients_are_set_to_zero_in_place():
    def make_step(model, optimizer):
        def step(x, y):
            optimizer.zero_grad(set_to_none=False)
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    check_steps(make_step, OPTIMIZERS["adam"], calls=10)


@pytest.mark.parametrize("foreach", [False, True])
def test_gradient_clipping(foreach):
    def make_step(model, optimizer):
        def step(x, y):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1, foreach=foreach)
            optimizer.step()
            return loss.detach() + norm

        return step

    check_steps(make_step, OPTIMIZERS["adamw"], calls=10)


def test_accumulation_over_several_backward_calls():
    def make_step(model, optimizer):
        def step(x, y):
            optimizer.zero_grad()
            total = 0
            for part, target in zip(x.chunk(4), y.chunk(4), strict=True):
                loss = ((model(part) - target) ** 2).mean() / 4
                loss.backward()
                total = total + loss.detach()
            optimizer.step()
            return total

        return step

    check_steps(make_step, OPTIMIZERS["sgd_momentum"], calls=10)


def with_closure(model, optimizer):
    def step(x, y):
        def closure():
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            return loss

        return optimizer.step(closure)

    return step


def two_losses(model, optimizer):
    def step(x, y):
        out = model(x)
        first, second = (out**2).mean(), (out - y).abs().mean()
        model.zero_grad()
        first.backward(retain_graph=True)
        second.backward()
        optimizer.step()
        return first, second

    return step


def gradient_penalty(model, optimizer):
    def step(x, y):
        loss = ((model(x) - y) ** 2).mean()
        (gradient,) = torch.autograd.grad(loss, model[0].weight, create_graph=True)
        optimizer.zero_grad()
        (loss + gradient.pow(2).sum()).backward()
        optimizer.step()
        return loss.detach()

    return step


def assigned_gradients(model, optimizer):
    def step(x, y):
        loss = ((model(x) - y) ** 2).mean()
        parameters = list(model.parameters())
        for p, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            p.grad = gradient
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def rate_changed_inside(model, optimizer):
    def step(x, y):
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] * 0.9
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach(), optimizer.param_groups[0]["lr"]

    return step


def averaged_weights(model, optimizer):
    average = [p.detach().clone() for p in model.parameters()]

    def step(x, y):
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.01)
        optimizer.step()
        with torch.no_grad():
            for mean, p in zip(average, model.parameters(), strict=True):
                mean.mul_(0.9).add_(p, alpha=0.1)
        return average[0] * 1

    return step


@pytest.mark.parametrize(
    "make_step",
    [with_closure, two_losses, gradient_penalty, assigned_gradients, rate_changed_inside, averaged_weights],
    ids=lambda f: f.__name__,
)
def test_other_ways_to_write_a_step(make_step):
    check_steps(make_step, OPTIMIZERS["adam"], calls=8)


def test_a_break_between_backward_and_step():
    def make_step(model, optimizer):
        def step(x, y):
            loss = ((model(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            graphlift.graph_break()
            optimizer.step()
            return loss.item()

        return step

    graphlift.reset()
    got = train(make_step, OPTIMIZERS["adam"], True, 6)
    counts = graphlift.counters()
    want = train(make_step, OPTIMIZERS["adam"], False, 6)
    losses = torch.tensor([[result.pop(0) for result in run["results"]] for run in (got, want)])
    torch.testing.assert_close(losses[0], losses[1])
    same(got, want)
    assert counts["internal_errors"] == 0 and counts["given_up"] == 0 and counts["hits"] >= 8, counts


def test_accumulation_over_calls_keeps_the_gradient_itself():
    model, twin = make_model(), make_model()
    compiled = graphlift.compile(lambda m, x, y: ((m(x) - y) ** 2).mean().backward())
    kept = []
    for number in range(4):
        x, y = batch(number)
        compiled(model, x, y)
        ((twin(x) - y) ** 2).mean().backward()
        same([p.grad for p in model.parameters()], [p.grad for p in twin.parameters()])
        kept.append(model[0].weight.grad)
    assert all(grad is kept[0] for grad in kept)
    counts = graphlift.counters()
    assert counts["graph_breaks"] == 0 and counts["graphs"] == 2, counts


@pytest.mark.parametrize("backend", ["reference", "native"])
def test_autocast(backend):
    def make_step(model, optimizer):
        def step(x, y):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = ((model(x) - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return step

    graphlift.reset()
    got = train(make_step, OPTIMIZERS["sgd"], True, 5, backend=backend)
    counts = graphlift.counters()
    want = train(make_step, OPTIMIZERS["sgd"], False, 5)
    assert counts["graph_breaks"] == 0 and counts["graphs"] == 2, counts
    if backend == "reference":
        same(got, want)
    for mine, theirs in zip(got["parameters"], want["parameters"], strict=True):  # kernels keep more bits in between
        torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=2e-3)


def test_one_region_for_each_round_of_a_loop():
    def run(compiled):
        model = make_model()
        optimizer = AdamW(model.parameters(), lr=0.01)

        def epoch(loader):
            losses = []
            for x, y in loader:
                loss = ((model(x) - y) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
            return losses

        data = torch.utils.data.TensorDataset(*[torch.cat(parts) for parts in zip(*map(batch, range(8)), strict=True)])
        epoch = graphlift.compile(epoch) if compiled else epoch
        return [epoch(torch.utils.data.DataLoader(data, batch_size=8)) for _ in range(3)], list(model.parameters())

    graphlift.reset()
    got = run(True)
    counts = graphlift.counters()
    same(got, run(False))
    assert 1 <= counts["graphs"] <= 3 and counts["hits"] >= 20, counts


def loss_of(x):
    return x.exp().sum()


def test_a_loss_whose_graph_was_freed_raises_as_eagers():
    def program(x):
        loss = loss_of(x)
        loss.backward()
        return loss

    compiled, x = graphlift.compile(program), torch.ones(3, requires_grad=True)
    for _ in range(3):
        loss = compiled(x)
        assert loss.requires_grad and loss.grad_fn is not None
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            loss.backward()
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"]) == (2, 0), counts


def test_a_retained_graph_can_be_used_behind_the_region():
    def program(x):
        loss = loss_of(x)
        loss.backward(retain_graph=True)
        return loss

    compiled, x, twin = graphlift.compile(program), torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for _ in range(3):
        for function, leaf in ((compiled, x), (program, twin)):
            function(leaf).backward()
        same(x.grad, twin.grad)
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"]) == (2, 0), counts


def test_a_parameter_written_after_its_use_makes_backward_raise():
    def program(x):
        loss = (x * x).sum()
        loss.backward(retain_graph=True)
        with torch.no_grad():
            x.mul_(2)
        return loss

    x = torch.ones(3, requires_grad=True)
    loss = graphlift.compile(program)(x)
    same(x, torch.full((3,), 2.0, requires_grad=True))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"]) == (1, 0), counts


def test_hooks_that_appear_later_are_seen():
    def program(x):
        loss_of(x).backward()
        return x.grad * 1

    compiled, seen = graphlift.compile(program), []
    x, twin = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for hooked in (False, False, True, True):
        for leaf in (x, twin):
            if hooked:
                leaf.register_hook(lambda gradient: seen.append(1) or gradient * 2)
        same(compiled(x), program(twin))
        same(x.grad, twin.grad)
    assert len(seen) == 6
    regions(4, 0)  # without a gradient, with one, and one for each hook


def test_gradients_by_autograd_grad_and_of_fresh_leaves():
    def program(x):
        fresh = torch.ones(3, requires_grad=True)
        (first,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
        (first.sum() + (fresh * 3).sum()).backward()
        return fresh, first.detach()

    compiled = graphlift.compile(program)
    for _ in range(3):
        x, twin = torch.arange(3.0, requires_grad=True), torch.arange(3.0, requires_grad=True)
        got, want = compiled(x), program(twin)
        same([*got, x.grad, got[0].grad], [*want, twin.grad, want[0].grad])
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"]) == (1, 0), counts


def test_state_of_another_model_is_told_apart():
    def step(model, optimizer, x, y):
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = graphlift.compile(step)
    pairs = [(make_model(), make_model()) for _ in range(2)]
    optimizers = [[AdamW(m.parameters(), lr=0.01) for m in pair] for pair in pairs]
    for number in range(4):
        for (mine, theirs), (a, b) in zip(pairs, optimizers, strict=True):
            same(compiled(mine, a, *batch(number)), step(theirs, b, *batch(number)))
            same(list(mine.parameters()), list(theirs.parameters()))
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"], counts["hits"]) == (4, 0, 4), counts


def test_floats_that_change_are_inputs():
    compiled = graphlift.compile(lambda x, a: (x * a + a, x.add(x, alpha=a), 1 - a * 2 if x.dim() else None))
    x = torch.arange(3.0)
    for a in (0.5, 0.25, 3.0, -1.5, 7.25):
        got = compiled(x, a)
        same(list(got), [x * a + a, x.add(x, alpha=a), 1 - a * 2])
    assert graphlift.graph_count() == 2


def test_backward_reads_a_float_that_was_an_input():
    def program(x, a):
        return (x.sin() * a).exp()

    compiled = graphlift.compile(program)
    for a in (0.5, 0.25, 1.5):
        x, twin = torch.arange(3.0, requires_grad=True), torch.arange(3.0, requires_grad=True)
        compiled(x, a).sum().backward()
        program(twin, a).sum().backward()
        same(x.grad, twin.grad)
    assert graphlift.graph_count() == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex64])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_float_takes_part_in_arithmetic_as_a_number(dtype, shape):
    def program(x, a):
        return x * a, a * x, x + a, a - x, x - a, x / 3 * a, torch.add(x, x, alpha=2) * a

    compiled, x = graphlift.compile(program), torch.ones(shape).to(dtype) * 3
    for a in (0.5, 0.3, 1.7):
        same(list(compiled(x, a)), list(program(x, a)))
    assert graphlift.counters()["graph_breaks"] == 0 and graphlift.graph_count() == 2


def test_a_float_that_a_branch_needs_is_guarded():
    def program(x, a):
        return x * a if a > 1 else x + a

    compiled = graphlift.compile(program)
    for a in (0.5, 2.5, 0.25, 3.5):
        same(compiled(torch.arange(3.0), a), program(torch.arange(3.0), a))
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"]) == (4, 0), counts  # each value


def test_a_copied_model_has_its_own_region():
    model = make_model()
    other = copy.deepcopy(model)
    compiled = graphlift.compile(lambda m, x, y: ((m(x) - y) ** 2).mean().backward())
    for m in (model, other, model):
        compiled(m, *batch(0))
    same([p.grad * 2 for p in other.parameters()], [p.grad for p in model.parameters()])
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"]) == (2, 0), counts
