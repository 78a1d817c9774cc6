"""Random programs of elementwise operators, broadcasts, views and reductions. Must not know what runs them."""

import random

import torch

UNARY = [
    torch.exp,
    torch.tanh,
    torch.sigmoid,
    torch.relu,
    torch.sin,
    torch.neg,
    lambda t: t * 0.5,
    lambda t: t + 1,
    torch.erf,
]
BINARY = [torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, lambda a, b: torch.where(a > b, a, b)]
DTYPES = [torch.float32] * 4 + [torch.float64, torch.bfloat16, torch.float16]
DIMS = [1, 2, 3, 4, 7, 8, 16, 24, 33, 64, 130]


def _step(draw, values):
    """One more value from those there are."""
    kind, x = draw.randrange(8), draw.choice(values)
    if kind < 2 or x.dim() == 0:
        return draw.choice(UNARY)(x.clamp(-4, 4))
    if kind < 4:
        fitting = [y for y in values if _fits(x, y)]
        return draw.choice(BINARY)(x, draw.choice(fitting))
    dim = draw.randrange(x.dim())
    if kind == 4:
        return draw.choice([torch.sum, torch.mean, torch.amax])(x, dim, keepdim=draw.random() < 0.7)
    if kind == 5:
        return x.softmax(dim) if x.is_floating_point() else x
    if kind == 6:
        return x.transpose(dim, draw.randrange(x.dim()))
    return x.flatten(dim) if draw.random() < 0.5 else x.narrow(dim, 0, max(1, x.shape[dim] // 2))


def _fits(x, y):
    try:
        torch.broadcast_shapes(x.shape, y.shape)
    except RuntimeError:
        return False
    return True


def make(seed):
    """The function and its inputs' maker."""
    draw = random.Random(seed)
    shape = [draw.choice(DIMS) for _ in range(draw.randrange(1, 4))]
    shapes = [shape, shape, [n if draw.random() < 0.5 else 1 for n in shape], shape[-1:]]
    dtypes = [draw.choice(DTYPES)] * 4 if draw.random() < 0.7 else [draw.choice(DTYPES) for _ in range(4)]
    steps, grad = draw.randrange(2, 12), draw.random() < 0.5

    def function(*inputs):
        own = random.Random(seed + 1)
        values = list(inputs)
        for _ in range(steps):
            values.append(_step(own, values))
        return list({id(t): t for t in values[-min(3, steps) :]}.values())  # an operator may give its operand

    def inputs(device):
        generator = torch.Generator().manual_seed(seed)
        made = [torch.randn(s, generator=generator).to(dtype).to(device) for s, dtype in zip(shapes, dtypes)]
        return [t.requires_grad_(grad) for t in made]

    return function, inputs
