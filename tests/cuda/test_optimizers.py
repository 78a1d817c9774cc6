"""An optimizer's step on a GPU: many small updates are few launches and write in place; parameters and states are eager's."""

import pytest
import torch
from torch import nn

import graphlift

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, 1e-2),
    "AdamW, capturable": lambda p: torch.optim.AdamW(p, 1e-2, capturable=True),
    # With a smaller eps, gradients that are nothing but rounding are divided by themselves.
    "RMSprop": lambda p: torch.optim.RMSprop(p, 1e-2, eps=1e-2),
}


def trained(make, mode, dtype=torch.float32, steps=6):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(24, 24), nn.Tanh()) for _ in range(40)]).to("cuda", dtype)
    optimizer = make(model.parameters())

    def step(x, y):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    run = step if mode is None else graphlift.compile(step, mode=mode)
    torch.manual_seed(1)
    batches = [torch.randn(2, 16, 24, device="cuda", dtype=dtype) for _ in range(steps)]
    losses = [run(x, y).detach() for x, y in batches]
    states = [v for state in optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
    return [torch.stack(losses), *model.parameters(), *states]


# Step counters are single in both.
@pytest.mark.parametrize("dtype, bound", [(torch.float32, 1e-4), (torch.float64, 1e-7)], ids=["single", "double"])
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_whole_step(name, mode, dtype, bound):
    graphlift.reset()
    before = graphlift.counters()
    got = trained(OPTIMIZERS[name], mode, dtype)
    after = graphlift.counters()
    for ours, eager in zip(got, trained(OPTIMIZERS[name], None, dtype), strict=True):
        torch.testing.assert_close(ours, eager, rtol=10 * bound, atol=bound)
    # One on the GPU, and one of step counters that are the CPU's.
    assert after["multi_kernels"] - before["multi_kernels"] >= (2 if name in ("Adam", "RMSprop") else 1)
    assert after["graph_breaks"] == before["graph_breaks"]
    assert after["internal_errors"] == before["internal_errors"]


def test_parameters_that_are_no_multiples_of_a_vector_apart():
    memory = torch.zeros(1000, device="cuda")
    parts = [memory[1 + 90 * i : 1 + 90 * i + 7 * i + 1] for i in range(10)]

    def update(parts):
        for i, part in enumerate(parts):
            part.add_(1.5 + 0 * i)

    compiled = graphlift.compile(update)
    for _ in range(3):
        expected = [part + 1.5 for part in parts]
        compiled(parts)
        for part, right in zip(parts, expected, strict=True):
            assert torch.equal(part, right)
    assert memory[0] == 0 and memory[-1] == 0
