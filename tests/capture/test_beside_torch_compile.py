"""A process that uses torch.compile too: torch marks its optimizers' methods then, and notes new modules; all the same."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import build_folder  # noqa: F401
import torch
import torch._dynamo
import graphlift

assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)).tolist() == [2, 2]


def train(name, compiled, **options):
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 3)
    optimizer = getattr(torch.optim, name)(net.parameters(), lr=0.1, **options)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    step = graphlift.compile(step) if compiled else step
    for i in range(4):
        step(torch.full((2, 3), 1.0 + i))
    return [p.detach() for p in net.parameters()]


for name, options in [("SGD", {{"momentum": 0.9}}), ("Adam", {{}}), ("AdamW", {{"foreach": True}})]:
    graphlift.reset()
    before = graphlift.counters()["graph_breaks"]
    got = train(name, True, **options)
    assert graphlift.counters()["graph_breaks"] == before and 1 <= graphlift.graph_count() <= 2, name
    torch.testing.assert_close(got, train(name, False, **options))


@torch.compiler.disable
def mine(x):
    return x * 2


before = graphlift.counters()["graph_breaks"]
assert graphlift.compile(lambda x: mine(x) + 1)(torch.ones(2)).tolist() == [3, 3]
assert graphlift.counters()["graph_breaks"] == before + 1


class Some(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(4))

    def forward(self, x):
        for layer in self.layers[:2]:
            x = layer(x)
        return x


# torch.compile has each new module noted from now on; a slice of a list of modules is one.
graphlift.reset()
some, x = Some(), torch.ones(2, 3)
assert hasattr(torch.nn.Module, "___needs_generation_tag_patch")
compiled = graphlift.compile(some)
for _ in range(2):
    torch.testing.assert_close(compiled(x), some(x))
counts = graphlift.counters()
assert counts["graphs"] == 1 and counts["graph_breaks"] == 0, counts
print("all right")
"""


def test_training_steps_stay_whole():
    text = PROGRAM.format(tests=str(Path(__file__).parent.parent))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0 and "all right" in done.stdout, done.stderr[-3000:]
