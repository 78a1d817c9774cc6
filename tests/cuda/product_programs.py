"""Products of matrices in every form that the library is told of. Must not know what runs them."""

import itertools

import torch
from kernel_programs import BF16, F16, F32, F64, Program
from torch.nn import functional as F

PRODUCTS = []


def add(name, function, *shapes, dtype, symbolic=(), grad=True, layout=lambda *tensors: tensors):
    """`layout` makes of the tensors of these shapes what the function gets: other strides over the same numbers."""

    def make(device):
        generator = torch.Generator().manual_seed(11)
        made = layout(*[(torch.randn(shape, generator=generator) / 2).to(dtype).to(device) for shape in shapes])
        return [tensor.detach().requires_grad_(grad) for tensor in made]

    PRODUCTS.append(Program(f"{name} {str(dtype).removeprefix('torch.')}", function, make, list(symbolic)))


def gaps(tensor):
    """The same numbers with eight more elements from line to line."""
    wide = torch.zeros(*tensor.shape[:-1], tensor.shape[-1] + 8, dtype=tensor.dtype, device=tensor.device)
    wide[..., 8:] = tensor
    return wide[..., 8:]


def shifted(tensor):
    """The same numbers in memory that begins one element later than aligned."""
    flat = torch.zeros(tensor.numel() + 1, dtype=tensor.dtype, device=tensor.device)
    flat[1:] = tensor.flatten()
    return flat[1:].view(tensor.shape)


def by_columns(tensor):
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)


LAYOUTS = {"rows": lambda t: t, "columns": by_columns, "gaps": gaps, "shifted": shifted}


def heads(x, w):
    """Batches whose rows lie apart: attention's scores."""
    q = x.view(2, 5, 4, 8).transpose(1, 2)
    k = w.view(2, 5, 4, 8).transpose(1, 2)
    return [torch.matmul(q, k.transpose(-1, -2)) * 0.25]


def block(x, w1, b1, w2, b2):
    """A transformer's feed-forward part, with what stands in front and behind."""
    return [x + F.linear(F.gelu(F.linear(x, w1, b1), approximate="tanh"), w2, b2)]


for dtype in (F32, F64, F16, BF16):
    for (a_name, a), (b_name, b) in itertools.product(LAYOUTS.items(), LAYOUTS.items()):
        how = lambda x, y, a=a, b=b: (a(x), b(y))  # noqa: E731
        add(f"mm {a_name} {b_name}", lambda x, y: [x @ y], (16, 24), (24, 40), dtype=dtype, layout=how)
        if dtype in (F32, BF16):
            add(
                f"bmm {a_name} {b_name}",
                lambda x, y: [torch.bmm(x, y)],
                (3, 16, 8),
                (3, 8, 24),
                dtype=dtype,
                layout=how,
            )
    add("linear", lambda x, w, b: [F.linear(x, w, b)], (4, 6, 16), (32, 16), (32,), dtype=dtype)
    add("linear without bias", lambda x, w: [F.linear(x, w)], (4, 6, 16), (32, 16), dtype=dtype)
    add("linear, odd", lambda x, w, b: [F.linear(x, w, b)], (5, 7), (3, 7), (3,), dtype=dtype)
    add("row by matrix", lambda x, w, b: [F.linear(x, w, b)], (1, 16), (24, 16), (24,), dtype=dtype)
    add("one column", lambda x, w, b: [F.linear(x, w, b)], (8, 16), (1, 16), (1,), dtype=dtype)
    add("inner size 1", lambda x, y: [x @ y], (8, 1), (1, 16), dtype=dtype)
    add("relu", lambda x, w, b: [F.relu(F.linear(x, w, b))], (4, 6, 16), (32, 16), (32,), dtype=dtype)
    add("relu alone", lambda x, w: [F.relu(x @ w)], (8, 16), (16, 32), dtype=dtype)
    add(
        "gelu",
        lambda x, w, b: [F.gelu(F.linear(x, w, b), approximate="tanh")],
        (4, 6, 16),
        (32, 16),
        (32,),
        dtype=dtype,
    )
    add("gelu by erf", lambda x, w, b: [F.gelu(F.linear(x, w, b))], (4, 6, 16), (32, 16), (32,), dtype=dtype)
    add("gelu, no gradients", lambda x, w, b: [F.gelu(F.linear(x, w, b), approximate="tanh")], (4, 6, 16), (32, 16),
        (32,), dtype=dtype, grad=False)  # fmt: skip
    add("residual", lambda x, w, b, r: [r + F.linear(x, w, b)], (4, 6, 16), (32, 16), (32,), (4, 6, 32), dtype=dtype)
    add(
        "residual, relu",
        lambda x, w, b, r: [F.relu(F.linear(x, w, b) + r)],
        (8, 16),
        (32, 16),
        (32,),
        (8, 32),
        dtype=dtype,
    )
    add("difference", lambda x, w, r: [x @ w - r], (8, 16), (16, 32), (8, 32), dtype=dtype)
    add("scaled", lambda x, w, b: [x @ w * 0.125 + b], (8, 16), (16, 32), (32,), dtype=dtype)
    add("widened", lambda x, w: [(x @ w).float()], (8, 16), (16, 32), dtype=dtype)
    add("widened and read", lambda x, w: [(x @ w).float().sin()], (8, 16), (16, 32), dtype=dtype)
    add("two readers", lambda x, w: [F.relu(x @ w), (x @ w).sum(0)], (8, 16), (16, 32), dtype=dtype)
    add("addmm", lambda c, x, w: [torch.addmm(c, x, w, beta=0.5, alpha=2)], (8, 32), (8, 16), (16, 32), dtype=dtype)
    add("addmm of a column", lambda c, x, w: [torch.addmm(c, x, w)], (8, 1), (8, 16), (16, 32), dtype=dtype)
    add("addmm of a row", lambda c, x, w: [torch.addmm(c, x, w)], (1, 32), (8, 16), (16, 32), dtype=dtype)
    add("addmm, beta 0", lambda c, x, w: [torch.addmm(c, x, w, beta=0)], (32,), (8, 16), (16, 32), dtype=dtype)
    add("addmm, c by columns", lambda c, x, w: [torch.addmm(c, x, w)], (8, 32), (8, 16), (16, 32), dtype=dtype,
        layout=lambda c, x, w: (by_columns(c), x, w))  # fmt: skip
    add(
        "baddbmm",
        lambda c, x, w: [torch.baddbmm(c, x, w, beta=2, alpha=0.5)],
        (3, 8, 32),
        (3, 8, 16),
        (3, 16, 32),
        dtype=dtype,
    )
    add("baddbmm of a matrix", lambda c, x, w: [torch.baddbmm(c, x, w)], (8, 32), (3, 8, 16), (3, 16, 32), dtype=dtype)
    add("one b for all", lambda x, w: [torch.matmul(x, w)], (3, 8, 16), (16, 32), dtype=dtype)
    add("one b for all, expanded", lambda x, w: [torch.bmm(x, w.expand(3, 16, 32))], (3, 8, 16), (16, 32), dtype=dtype)
    add("rows of one a", lambda x, w: [torch.bmm(x.expand(3, 8, 16), w)], (8, 16), (3, 16, 32), dtype=dtype)
    add("an expanded operand", lambda x, w: [x.expand(8, 16) @ w], (1, 16), (16, 32), dtype=dtype)
    add("heads", heads, (2, 5, 32), (2, 5, 32), dtype=dtype)
    add("block", block, (2, 6, 16), (64, 16), (64,), (16, 64), (16,), dtype=dtype)
    for sizes in ((0, 16, 8), (8, 0, 16), (8, 16, 0)):
        m, k, n = sizes
        add(f"empty {sizes}", lambda x, w, b: [F.relu(torch.addmm(b, x, w))], (m, k), (k, n), (n,), dtype=dtype)
    add("sizes that vary", lambda x, w, b: [F.relu(F.linear(x, w, b))], (6, 16), (32, 16), (32,), dtype=dtype,
        symbolic=[[0], [], []])  # fmt: skip
    add("batches that vary", lambda x, y: [torch.bmm(x, y) * 0.5], (3, 8, 16), (3, 16, 8), dtype=dtype,
        symbolic=[[0, 1], [0, 2]])  # fmt: skip


def special(dtype):
    """NaN and infinities come through whatever finishes a product."""

    def make(device):
        w = torch.ones(16, 16, dtype=dtype)
        w[0], w[1], w[2], w[3] = float("nan"), float("inf"), -float("inf"), -1.0
        return [w.to(device), torch.ones(24, 16, dtype=dtype, device=device)]

    def function(w, ones):
        plain, biased = F.relu(w @ ones.t()), F.relu(F.linear(w, ones, ones[:, 0].contiguous()))
        return [plain, biased, F.gelu(F.linear(w, ones), approximate="tanh")]

    return Program(f"special values {str(dtype).removeprefix('torch.')}", function, make)


PRODUCTS += [special(dtype) for dtype in (F32, F64, F16, BF16)]
