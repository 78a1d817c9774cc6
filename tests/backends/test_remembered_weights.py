"""`remember_weights`: kept copies of weights are used while a weight is unchanged, and each kind of change is seen."""

import copy
import gc
import warnings

import pytest
import torch
from closeness import close
from torch import nn

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(
    _C.kernel_refusal() != "" or _C.onednn_refusal() != "", reason="without oneDNN no weight has another form"
)
REMEMBER = {"remember_weights": True}


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)
    graphlift.reset()
    gc.collect()


def count(name):
    return graphlift.counters()[name]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(16, 32, 3, padding=1)
        self.down = nn.Conv2d(32, 16, 3, stride=2, bias=False)
        self.up = nn.Linear(144, 256)
        self.out = nn.Linear(256, 64)

    def forward(self, x):
        x = torch.relu(self.down(torch.relu(self.conv(x))))
        return self.out(nn.functional.gelu(self.up(x.flatten(1))))


def agrees(compiled, model, *inputs, calls=3):
    """Each call's result is eager's; how often a copy was used."""
    before = count("remembered_weights")
    for _ in range(calls):
        assert not close(model(*inputs), compiled(*inputs))
    return count("remembered_weights") - before


def settled(model, x, **arguments):
    """The model compiled, with its four weights remembered."""
    compiled = graphlift.compile(model.forward, fullgraph=True, options=REMEMBER, **arguments)
    graphs = count("graphs")
    assert agrees(compiled, model, x, calls=2) == 4  # seen, copied
    assert agrees(compiled, model, x, calls=1) == 4
    assert count("graphs") == graphs + 1
    return compiled


def test_off_unless_asked_for():
    model, x = Net(), torch.randn(4, 16, 8, 8)
    compiled = graphlift.compile(model.forward)
    with torch.no_grad():
        assert agrees(compiled, model, x) == 0
        model.up.weight.data.mul_(2)  # what the option would not see
        assert agrees(compiled, model, x) == 0


def stepped(optimizer, **arguments):
    def change(model):
        with torch.enable_grad():
            made = optimizer(model.parameters(), **arguments)

            def loss():
                made.zero_grad()
                result = model(torch.ones(2, 16, 8, 8)).square().mean()
                result.backward()
                return result

            made.step(loss)
            made.zero_grad()

    return change


def compiled_step(fused):
    def change(model):
        made = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)

        def step(x):
            model(x).square().mean().backward()
            made.step()

        with torch.enable_grad():
            graphlift.compile(step)(torch.ones(2, 16, 8, 8))
        made.zero_grad()

    return change


def data_there_and_back(model):
    old = model.up.weight.data
    model.up.weight.data = torch.randn_like(old)
    model(torch.ones(1, 16, 8, 8))
    model.up.weight.data = old


def swapped(model):
    torch.utils.swap_tensors(model.up.weight, nn.Parameter(torch.randn_like(model.up.weight)))


def in_inference_mode(model):
    with torch.inference_mode():
        model.up.weight.add_(1)


CHANGES = {
    "in place": lambda model: [p.add_(0.5) for p in model.parameters()],
    "of a part": lambda model: model.up.weight[3].fill_(1),
    "through detach": lambda model: model.up.weight.detach().mul_(2),
    "through a view": lambda model: model.conv.weight.view(-1).mul_(2),
    "in inference mode": in_inference_mode,
    "init": lambda model: [nn.init.normal_(p, std=0.1) for p in model.parameters()],
    "load_state_dict": lambda model: model.load_state_dict(Net().state_dict()),
    "load_state_dict, assigned": lambda model: model.load_state_dict(Net().state_dict(), assign=True),
    "vector_to_parameters": lambda model: nn.utils.vector_to_parameters(
        nn.utils.parameters_to_vector(Net().parameters()), model.parameters()
    ),
    "data": lambda model: setattr(model.up.weight, "data", torch.randn_like(model.up.weight)),
    "data, there and back": data_there_and_back,
    "another parameter": lambda model: setattr(model.up, "weight", nn.Parameter(torch.randn(256, 144))),
    "swapped tensors": swapped,
    "in shared memory": lambda model: model.share_memory(),
    "averaged": lambda model: torch.optim.swa_utils.AveragedModel(model).update_parameters(Net()),
    "SGD": stepped(torch.optim.SGD, lr=0.1, foreach=False),
    "SGD, foreach": stepped(torch.optim.SGD, lr=0.1, foreach=True),
    "SGD, fused": stepped(torch.optim.SGD, lr=0.1, fused=True),
    "Adam, fused": stepped(torch.optim.Adam, fused=True),
    "AdamW, fused": stepped(torch.optim.AdamW, fused=True),
    "AdamW, fused, lr a tensor": stepped(torch.optim.AdamW, fused=True, lr=torch.tensor(0.01)),
    "Adagrad, fused": stepped(torch.optim.Adagrad, fused=True),
    "LBFGS": stepped(torch.optim.LBFGS),
    "a compiled step": compiled_step(False),
    "a compiled step, fused": compiled_step(True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_seen(change):
    model, x = Net(), torch.randn(4, 16, 8, 8)
    with torch.no_grad():
        compiled = settled(model, x)
        before = model(x)
        for _ in range(2):
            CHANGES[change](model)
            assert agrees(compiled, model, x, calls=3) >= 4
            assert agrees(compiled, model, x, calls=1) == 4
        moved = change not in ("in shared memory", "averaged", "data, there and back")
        assert (model(x) - before).abs().max().gt(1e-6).item() == moved


def test_frozen_layers_in_training():
    """The backward reads the weights, too."""
    frozen = nn.Sequential(nn.Conv2d(16, 32, 3), nn.GELU(), nn.Conv2d(32, 16, 3)).requires_grad_(False)
    x, scale = torch.randn(2, 16, 10, 10), torch.ones(16, 1, 1, requires_grad=True)

    def gradient(function):
        (result,) = torch.autograd.grad(function(x * scale).square().sum(), scale)
        return result

    compiled, graphs = graphlift.compile(frozen.forward, options=REMEMBER, fullgraph=True), count("graphs")
    for step in range(6):
        before = count("remembered_weights")
        assert not close(gradient(frozen), gradient(compiled))
        assert count("remembered_weights") - before == (0 if step in (0, 3) else 4)
        if step == 2:
            with torch.no_grad():
                frozen[0].weight.mul_(1.5)
                frozen[2].weight.mul_(0.5)
    assert count("graphs") == graphs + 1


@pytest.mark.parametrize("fused", [False, True])
def test_weights_that_change_at_every_step_are_not_copied(fused):
    eager = Net()
    model, x = copy.deepcopy(eager), torch.randn(4, 16, 8, 8)
    compiled = graphlift.compile(model.forward, options=REMEMBER, fullgraph=True)
    optimizers = [torch.optim.SGD(it.parameters(), lr=0.05, fused=fused) for it in (eager, model)]
    before = count("remembered_bytes")
    for _ in range(5):
        for function, optimizer in zip((eager, compiled), optimizers):
            optimizer.zero_grad()
            function(x).square().mean().backward()
            optimizer.step()
        assert fused or count("remembered_bytes") == before
    for p, q in zip(eager.parameters(), model.parameters()):
        assert not close(p.detach(), q.detach())


def test_copies_go_with_the_region():
    before = count("remembered_bytes")
    with torch.no_grad():
        model, x = Net(), torch.randn(4, 16, 8, 8)
        compiled = settled(model, x)
        weights = sum(p.nbytes for p in model.parameters() if p.dim() > 1)
        assert weights <= count("remembered_bytes") - before < 2 * weights
        del compiled
    gc.collect()
    graphlift.reset()
    assert count("remembered_bytes") == before


def test_copies_go_with_the_weight_and_keep_none_alive():
    before = count("remembered_bytes")
    linear, x = nn.Linear(256, 256), torch.randn(4, 256)
    compiled = graphlift.compile(linear.forward, options=REMEMBER)
    with torch.no_grad():
        for _ in range(5):
            linear.weight = nn.Parameter(torch.randn(256, 256) / 16)
            assert agrees(compiled, linear, x) == 2
            assert 2**18 <= count("remembered_bytes") - before < 2**19


def test_regions_of_one_weight_share_its_copy():
    before = count("remembered_bytes")
    linear = nn.Linear(256, 256)
    compiled = graphlift.compile(linear.forward, options=REMEMBER, dynamic=False)
    with torch.no_grad():
        for rows in (2, 3, 4):
            assert agrees(compiled, linear, torch.randn(rows, 256)) == 2
    assert count("regions") >= 3 and count("remembered_bytes") - before < 3 * 2**18


def test_sizes_that_vary():
    linear = nn.Linear(256, 256)
    compiled = graphlift.compile(linear.forward, options=REMEMBER, dynamic=True)
    with torch.no_grad():
        agrees(compiled, linear, torch.randn(3, 256), calls=2)
        graphs = count("graphs")
        for rows in (2, 4, 3):
            assert agrees(compiled, linear, torch.randn(rows, 256)) >= 1
        assert count("graphs") == graphs
        linear.weight.mul_(2)
        assert agrees(compiled, linear, torch.randn(2, 256)) == 2


def test_layers_that_share_a_region():
    layers = [nn.Linear(256, 256) for _ in range(6)]

    def call(layer, x):
        return torch.relu(layer(x))

    compiled, x = graphlift.compile(call, options=REMEMBER), torch.randn(4, 256)
    with torch.no_grad():
        for turn in range(4):
            used = sum(agrees(compiled, call, layer, x, calls=1) for layer in layers)
            assert used == (6 if turn else 0)
        assert count("graphs") == 1
        layers[2].weight.add_(1)
        assert sum(agrees(compiled, call, layer, x, calls=1) for layer in layers) == 5


def test_arguments_and_results_are_no_weights():
    before = count("remembered_bytes")

    def call(x, y):
        return nn.functional.linear(nn.functional.linear(x, y * 1.0), y)

    x, y = torch.randn(4, 256) / 16, torch.randn(256, 256) / 16
    assert agrees(graphlift.compile(call, options=REMEMBER), call, x, y, calls=4) == 0
    assert count("remembered_bytes") == before


def test_a_weight_of_a_closure():
    w, x = torch.randn(256, 256) / 16, torch.randn(4, 256)

    def call(x):
        return torch.relu(nn.functional.linear(x, w))

    compiled = graphlift.compile(call, options=REMEMBER)
    assert agrees(compiled, call, x) == 2
    w += 0.1
    assert agrees(compiled, call, x) == 2


def test_the_region_writes_the_weight_itself():
    class Drifting(nn.Linear):
        def forward(self, x):
            result = super().forward(x)
            self.weight.mul_(0.9)
            return result

    model = Drifting(64, 64)
    eager, x = copy.deepcopy(model), torch.randn(4, 64)
    compiled = graphlift.compile(model.forward, options=REMEMBER)
    with torch.no_grad():
        assert agrees(compiled, eager, x, calls=5) == 0


def test_measured():
    """max-autotune measures the product with its copy."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        model, x = nn.Linear(1024, 512), torch.randn(4, 1024)
        compiled = graphlift.compile(model.forward, options=REMEMBER, mode="max-autotune")
        measured = _C.tunings()
        agrees(compiled, model, x)
        assert _C.tunings() in (measured, measured + 1)
        model.weight.neg_()
        agrees(compiled, model, x)
