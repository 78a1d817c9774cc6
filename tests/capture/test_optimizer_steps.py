"""A whole training step with each of torch's optimizers: graphs and breaks are counted, the state after 50 steps is
eager's. Numbers that an optimizer reads from its counters are the graph's; what it decides on them is guarded."""

import functools
import math

import pytest
import torch
from judging import same
from test_training_steps import batch, check_steps, make_model, plain_step

import graphlift

# name -> optimizer, its arguments, regions. The first step makes gradients and state, the second is the one that all others
# hit; RAdam corrects the variance from its sixth step on; ASGD averages from step t0 on.
STEPS = {
    "RAdam": ("RAdam", {}, 3),
    "RAdam_decoupled": ("RAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}, 3),
    "ASGD": ("ASGD", {}, 2),
    "ASGD_averaging": ("ASGD", {"t0": 10, "weight_decay": 0.1}, 3),
    "Adafactor": ("Adafactor", {}, 2),
    "Adafactor_decay": ("Adafactor", {"weight_decay": 0.1, "beta2_decay": -0.5}, 2),
    "NAdam": ("NAdam", {}, 2),
    "NAdam_decoupled": ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}, 2),
    "Adadelta": ("Adadelta", {"weight_decay": 0.01}, 2),
    "Adamax": ("Adamax", {"weight_decay": 0.01}, 2),
    "Rprop": ("Rprop", {}, 2),
    "SGD": ("SGD", {"weight_decay": 0.1}, 2),
    "SGD_dampening": ("SGD", {"momentum": 0.9, "dampening": 0.1}, 2),
    "SGD_maximize": ("SGD", {"lr": 1e-4, "maximize": True, "momentum": 0.9, "nesterov": True}, 2),
    "Adagrad_decay": ("Adagrad", {"lr_decay": 0.1}, 2),
    "RMSprop_centered": ("RMSprop", {"centered": True, "weight_decay": 0.01}, 2),
}


def make(name, foreach):
    kind, arguments, _ = STEPS[name]
    return functools.partial(getattr(torch.optim, kind), **{"lr": 0.01} | arguments, foreach=foreach)


@pytest.mark.parametrize("foreach", [False, True], ids=["plain", "foreach"])
@pytest.mark.parametrize("name", STEPS)
def test_one_region_and_eagers_state_after_50_steps(name, foreach):
    graphs = 2 if (name, foreach) == ("ASGD_averaging", True) else STEPS[name][2]  # it reads no averaging factor
    counts = check_steps(plain_step, make(name, foreach), graphs=graphs)
    assert counts["graphs"] == graphs


def test_what_is_decided_on_a_counter_is_guarded():
    """A counter that is set back by hand is decided on again."""

    def run(wrap):
        model = make_model()
        optimizer = torch.optim.RAdam(model.parameters(), lr=0.01)
        step = wrap(plain_step(model, optimizer))
        for number in range(24):
            if number in (10, 17):
                for state in optimizer.state.values():
                    state["step"].fill_(2.0)
            step(*batch(number))
        return [p.detach() for p in model.parameters()], [dict(optimizer.state[p]) for p in model.parameters()]

    graphlift.reset()
    same(run(graphlift.compile), run(lambda step: step))
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"]) == (3, 0) and counts["hits"] == 21, counts


def test_counters_that_differ_from_parameter_to_parameter():
    def run(wrap):
        model = make_model()
        optimizer = torch.optim.RAdam(model.parameters(), lr=0.01)
        step = wrap(plain_step(model, optimizer))
        for number in range(12):
            if number == 3:
                optimizer.state[model[0].weight]["step"].fill_(7.0)
            step(*batch(number))
        return [p.detach() for p in model.parameters()], [dict(optimizer.state[p]) for p in model.parameters()]

    graphlift.reset()
    same(run(graphlift.compile), run(lambda step: step))
    assert graphlift.counters()["graph_breaks"] == 0 and graphlift.graph_count() == 4


def test_numbers_of_other_places_are_no_numbers_of_the_graph():
    """Outside of torch.optim a number that is read from a tensor stays a break."""
    compiled = graphlift.compile(lambda x, n: x * max(1.0, n.item()))
    for k in range(3):
        assert compiled(torch.ones(1), torch.tensor(float(k))).item() == max(1.0, k)
    assert graphlift.counters()["graph_breaks"] >= 1


DECIDES = """
def decides(x, counter, factor, limit):
    counter.mul_(factor)
    return x * 2 if counter.item() >= limit else x * 3
"""


def test_a_counter_is_rounded_as_its_tensor_is():
    """The factor is rounded, too, before it is multiplied in single precision."""
    scope = {"__name__": "torch.optim.of_a_test"}  # numbers of the graph are those of optimizers
    exec(DECIDES, scope)
    program, cases = scope["decides"], []
    for number in range(1, 400):
        start, factor = number / 7, 1 - 1 / (number + 2)
        product = torch.tensor(start) * factor
        if product.item() != torch.tensor(torch.tensor(start).item() * factor).item():
            cases += [(start, factor, product.item()), (start, factor, math.nextafter(product.item(), math.inf))]
    assert len(cases) > 10
    for start, factor, limit in cases[:12]:
        graphlift.reset()
        compiled = graphlift.compile(program, fullgraph=True)
        for _ in range(2):
            got, want = (f(torch.ones(1), torch.tensor(start), factor, limit) for f in (compiled, program))
            assert got.item() == want.item(), (start, factor, limit)
        assert graphlift.graph_count() == 1
