"""Random expressions over tensors, forward and backward, as native code: values and gradients are eager's."""

import pytest
import torch
from closeness import close
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import graphlift
from graphlift import _C

pytestmark = [
    pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}"),
    pytest.mark.without_passes,
]

EXAMPLES = 150
SHAPES = [(4, 6), (1, 6), (6,), (4, 1), (2, 3, 8), (3, 8), (2, 1, 8), (33, 17), (5, 40), (1,), (16, 16), ()]
UNARY = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
    "relu": torch.relu,
    "exp": lambda x: (x * 0.1).exp(),
    "square": lambda x: x * x,
    "neg": lambda x: -x,
    "abs": torch.abs,
    "sin": torch.sin,
    "double": lambda x: x * 2 + 1,
    "where": lambda x: torch.where(x > 0.3, x, x * 0.5),
    "clamp": lambda x: x.clamp(-1, 1),
}
BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "max": torch.maximum,
    "div": lambda a, b: a / (b.abs() + 1),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
}
REDUCE = {
    "sum": lambda x, d, k: x.sum(d, keepdim=k),
    "mean": lambda x, d, k: x.mean(d, keepdim=k),
    "amax": lambda x, d, k: x.amax(d, keepdim=k),
    "var": lambda x, d, k: x.var(d, unbiased=False, keepdim=k),
}
ALONG = {
    "softmax": lambda x, d: x.softmax(d),
    "log_softmax": lambda x, d: x.log_softmax(d),
    "center": lambda x, d: x - x.mean(d, keepdim=True),
    "unit": lambda x, d: x * torch.rsqrt(x.pow(2).mean(d, keepdim=True) + 1e-3),
}
VIEW = {
    "t": lambda x, n: x.transpose(0, -1) if x.dim() else x,
    "flat": lambda x, n: x.reshape(-1),
    "slice": lambda x, n: x[1:] if x.dim() and x.shape[0] > 1 else x,
    "step": lambda x, n: x[..., ::2] if x.dim() else x,
    "select": lambda x, n: x[n % x.shape[0]] if x.dim() else x,
    "unsqueeze": lambda x, n: x.unsqueeze(n % (x.dim() + 1)),
    "split": lambda x, n: x.reshape(2, -1) if x.numel() % 2 == 0 and x.numel() else x,
    "cat": lambda x, n: torch.cat([x * 2, x + 1], -1) if x.dim() else x,
    "expand": lambda x, n: x.unsqueeze(0).expand(3, *x.shape),
    "contiguous": lambda x, n: x.transpose(0, -1).contiguous() if x.dim() else x,
}


def broadcast(a, b):
    try:
        torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        return False
    return a.numel() * b.numel() < 1 << 20


STEP = st.tuples(
    st.sampled_from(
        [("unary", n) for n in UNARY]
        + [("binary", n) for n in BINARY] * 2
        + [("reduce", n) for n in REDUCE]
        + [("along", n) for n in ALONG]
        + [("view", n) for n in VIEW]
    ),
    st.integers(0, 30),
    st.integers(0, 30),
)


def apply(step, values):
    """One more value from those there are; None where the step does not fit."""
    (kind, name), i, j = step
    x, y = values[i % len(values)], values[j % len(values)]
    if kind == "unary":
        return UNARY[name](x)
    if kind == "binary":
        return BINARY[name](x, y) if broadcast(x, y) else None
    if kind == "view":
        return VIEW[name](x, j)
    if x.dim() == 0 or x.numel() == 0:
        return None
    if kind == "along":
        return ALONG[name](x, j % x.dim())
    return REDUCE[name](x, j % x.dim(), bool(i % 2))


def program(steps):
    def run(*inputs):
        values = list(inputs)
        for step in steps:
            made = apply(step, values)
            if made is not None and made.numel() < 1 << 16:
                values.append(made)
        return values[len(inputs) :]

    return run


def made(shapes, train):
    torch.manual_seed(3)
    return [torch.randn(shape, requires_grad=train) for shape in shapes]


def results(function, inputs, train):
    outputs = function(*inputs)
    if not train:
        return outputs
    loss = sum((output.sum() for output in outputs if output.requires_grad), torch.zeros(()))
    if loss.requires_grad:
        loss.backward()
    return [*outputs, *(i.grad for i in inputs if i.grad is not None)]


PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)  # not explain: it traces what it runs


@settings(max_examples=EXAMPLES, deadline=None, phases=PHASES)
@given(
    st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3), st.lists(STEP, min_size=1, max_size=14), st.booleans()
)
def test_random_graph_equals_eager(shapes, steps, train):
    function = program(steps)
    graphlift.reset()
    before = graphlift.graph_count()
    eager = results(function, made(shapes, train), train)
    got = results(graphlift.compile(function, dynamic=False), made(shapes, train), train)
    inputs = made(shapes, False)
    computes = not all(
        any(root is i for i in inputs for root in (output, output._base)) for output in function(*inputs)
    )
    assert graphlift.graph_count() > before or not computes
    assert len(got) == len(eager)
    for expected, actual in zip(eager, got):
        # Sums of sums: what cancels is as wrong as its parts are large.
        scale = max(1.0, expected.detach().abs().max().item()) if expected.numel() else 1.0
        assert not close(expected.detach() / scale, actual.detach() / scale)
