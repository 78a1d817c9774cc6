"""What was captured, where it broke and what is guarded: graphlift.explain on a small model.

    python examples/explain.py

Exits non-zero when the report is not what the model's source says, or when the result differs from eager's.
"""

import sys

import torch

import graphlift


class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inlet = torch.nn.Linear(8, 16)
        self.outlet = torch.nn.Linear(16, 4)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        hidden = torch.nn.functional.gelu(self.inlet(x))
        print("mean", round(hidden.mean().item(), 4))  # a graph break: the number is needed
        return self.outlet(hidden).softmax(-1)


def main():
    torch.manual_seed(0)
    model = Gate()
    x = torch.randn(2, 8)
    report = graphlift.explain(model)(x)
    print(report)

    failures = []
    if report.graph_break_count < 1:
        failures.append("the break at .item() is not in the report")
    if report.graph_count != 2:
        failures.append(f"{report.graph_count} graphs instead of one on each side of the break")
    if not torch.allclose(graphlift.compile(model)(x), model(x)):
        failures.append("the result differs from eager's")
    if model.calls != 3:
        failures.append(f"forward ran {model.calls} times instead of 3")
    print("\n" + ("\n".join(failures) or "as expected, and equal to eager"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
