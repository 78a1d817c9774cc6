"""Programs whose kernels have every shape that schedules tell apart. Must not know what runs them.

A program is a function over tensors that returns a list of tensors, and how to make its inputs on a device.
"""

from dataclasses import dataclass, field
from typing import Callable

import torch
from torch.nn import functional as F

F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16


@dataclass
class Program:
    """`make(device)` gives equal inputs at each call. `symbolic`: per input, the dims that vary."""

    name: str
    function: Callable
    make: Callable
    symbolic: list = field(default_factory=list)


PROGRAMS = []


def program(*shapes, dtype=F32, grad=True, symbolic=(), name=None, layout=None):
    """Registers a function with random inputs of shapes; a shape may come with a dtype of its own: (shape, dtype)."""

    def make(device):
        generator = torch.Generator().manual_seed(7)
        made = []
        for shape in shapes:
            own = dtype
            if shape and isinstance(shape[-1], torch.dtype):
                shape, own = shape
            made.append(_tensor(shape, own, generator, grad and own.is_floating_point, device, layout))
        return made

    def register(function):
        PROGRAMS.append(Program(name or f"{function.__name__}{list(shapes)}{dtype}", function, make, list(symbolic)))
        return function

    return register


def _tensor(shape, dtype, generator, grad, device, layout):
    if dtype is torch.bool:
        return (torch.rand(shape, generator=generator) > 0.5).to(device)
    if not dtype.is_floating_point:
        return torch.randint(0, 5, shape, generator=generator).to(dtype).to(device)
    tensor = torch.randn(shape, generator=generator).to(dtype).to(device)
    if layout:
        tensor = layout(tensor)
    return tensor.detach().requires_grad_(grad)


def every(shapes, **options):
    """One function over several sets of shapes."""

    def register(function):
        for some in shapes:
            program(*some, **options)(function)
        return function

    return register


# --- elements ---
SIZES = [[()], [(1,)], [(0, 4)], [(7,)], [(8,)], [(1000,)], [(4, 129)], [(33, 64)], [(3, 5, 16)]]


@every(SIZES)
@every(SIZES[3:6], dtype=BF16)
@every(SIZES[3:6], dtype=F16)
@every(SIZES[3:6], dtype=F64)
def chain(x):
    return [torch.tanh(x * 2 + 1).exp() * torch.sigmoid(x), x.relu() - 0.5]


@every([[(8, 16), (16,)], [(8, 17), (17,)], [(4, 1, 8), (6, 1)], [(2, 3, 4), ()], [(64, 1), (1, 64)]])
def broadcast(x, y):
    return [x * y + y, (x - y).sin()]


@program((16, 24), layout=lambda t: t.t())
@program((4, 8, 6), layout=lambda t: t.transpose(0, 2))
@program((6, 32), layout=lambda t: t[:, 3:19])
@program((6, 32), layout=lambda t: t[:, ::2])
@program((9, 32), layout=lambda t: t[1:])
def strided(x):
    return [x * 3, x.t() if x.dim() == 2 else x.flatten(1) + 1, (x + 1).contiguous()]


@program((1001,), layout=lambda t: t[1:])
@program((7, 65), layout=lambda t: t.flatten()[3:].unfold(0, 64, 64))
@program((33, 48), layout=lambda t: t.flatten()[1:1537].view(32, 48))
def unaligned(x):
    return [x.exp() + 1, x.sum(-1), x.softmax(-1) if x.dim() > 1 else x * 2]


@every([[(96, 80)], [(3, 70, 50)], [(2, 33, 3, 40)]])
@every([[(96, 80)], [(3, 72, 48)]], dtype=BF16)
def transposes(x):
    return [(x * 2).transpose(-1, -2).contiguous(), x.exp().transpose(0, -1).contiguous() + 1]


@program((40, 64), (64, 40))
def transposed_sum(x, y):
    return [x + y.t()]


@program((5, 8), (5, 16))
@program((5, 3), (5, 6))
def joined(x, y):
    return [torch.cat([x.exp(), y * 2], 1), x + 1]


@program((6, 12))
def pieces(x):
    a, b, c = x.chunk(3, 1)
    return [F.silu(a) * b + c, x.flip(0) * 2, F.pad(x, (1, 2))]


@program((64,), ((64,), torch.bool), ((64,), torch.int64), ((64,), torch.uint8), grad=False)
def mixed(x, flags, whole, small):
    return [
        torch.where(flags, x, whole), x > whole, whole * 3 - small, small + 250, ~flags & (x > 0), whole.to(torch.int8),
        small.float() / 7, flags.long() + whole, (x * 100).to(torch.int32), whole.bitwise_and(small), -whole,
    ]  # fmt: skip


@program((32,), ((32,), BF16), ((32,), F16), ((32,), F64))
def several_floats(x, y, z, w):
    return [x + y, y * 2, z.float() * x, (w * x).to(BF16), y + z]


@program((16,), (), grad=False)
def scalar_tensor(x, scale):
    return [x * scale, x + scale.exp()]


@program((12, 16), grad=False)
def factories(x):
    return [
        x + torch.arange(16, device=x.device),
        torch.zeros(3, 4, device=x.device) + x[0, 0],
        torch.full_like(x, 2.5) * x,
        torch.arange(12, device=x.device)[:, None] * x,
    ]


def _special(device):
    values = torch.tensor(
        [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5, 2.5, -2.5, 1e-40, 3e38, -1.0, 8.0]
    )
    return [values.to(device), values.flip(0).to(device)]


def special_values(x, y):
    return [
        torch.maximum(x, y), torch.minimum(x, y), x.relu(), x.round(), x.clamp(-1, 2), x.isnan(), x.isinf(), x.sign(),
        torch.where(x > y, x, y), x.fmod(1.25), x.remainder(y), x.pow(2), x.amax(), y.amin(), x.nan_to_num(), x == y,
        x.to(BF16), x.to(F16), x.trunc(), x.floor(), x.sqrt(), x.log(), x.abs(), x.sigmoid(),
    ]  # fmt: skip


PROGRAMS.append(Program("special_values", special_values, _special))


def functions_of_16_bits(x):
    return [
        x.tanh(),
        x.erf(),
        x.sigmoid(),
        x.exp(),
        F.gelu(x.clamp(-1e4, 1e4)),  # of infinities it is NaN where oneDNN computes it for torch
        1 / (x.abs() + 1e-3),
        x.softmax(-1),
        x.sum(-1) / x[:, 0],
    ]


for _dtype in (BF16, F16):
    # Small, usual and large arguments of both signs, infinite ones and NaN.
    _sizes = torch.logspace(-4, 2, 252, dtype=torch.float64).tolist() + [0.0, float("inf"), float("nan"), 3e38]
    _values = torch.tensor([_sizes, [-size for size in _sizes]]).to(_dtype)
    PROGRAMS.append(
        Program(f"functions_of_16_bits {_dtype}", functions_of_16_bits, lambda device, v=_values: [v.to(device)])
    )


# --- rows ---
ROWS = [[(4, 3)], [(5, 16)], [(3, 64)], [(40, 128)], [(6, 257)], [(3, 1024)], [(2, 4096)], [(2, 3, 40)], [(300, 8)]]


@every(ROWS)
@every(ROWS[3:7], dtype=BF16)
@every(ROWS[3:5], dtype=F64)
def softmax(x):
    return [x.softmax(-1), x.log_softmax(-1)]


@every([[(*shape, n), (n,), (n,)] for shape, n in [((4,), 16), ((7,), 96), ((2, 5), 768), ((3,), 1030), ((2,), 4096)]])
@every([[(6, 64), (64,), (64,)], [(6, 768), (768,), (768,)]], dtype=BF16)
def layer_norm(x, w, b):
    return [F.gelu(F.layer_norm(x, w.shape, w, b)) + x]


@every([[(8, 64), (64,)], [(3, 1000), (1000,)]])
def rms_norm(x, w):
    return [x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w]


@every(ROWS)
def row_sums(x):
    return [x.sum(-1), x.mean(-1), x.amax(-1), (x * x).sum(-1, keepdim=True) + x, x.var(-1)]


# --- rows whose gradients are reduced across them as well ---
@every([[(n, k), (k,), (k,)] for n, k in [(200, 64), (131, 33), (700, 16), (133, 1030)]])
@every([[(150, 264), (264,), (264,)]], dtype=BF16)
@every([[(140, 70), (70,), (70,)]], dtype=F64)
@every([[(20, 9, 3, 24), (3, 24), (3, 24)]])
@program((130, 40), (40,), (40,), symbolic=[[0], [], []], name="symbolic_rows_across")
def norms_of_many_rows(x, w, b):
    y = F.layer_norm(x, w.shape, w, b)
    return [y + x, F.rms_norm(x, w.shape, w) * 2]


@program((300, 48), (48,))
def several_across(x, b):
    y = (x + b).softmax(-1)
    return [y, x.sum(0), x.amax(0), (x * y).sum(0) * b, x * y.sum(1, keepdim=True)]


@program((140, 256), (256,), (256,), name="rows_copied_ahead")
@program((135, 2048), (2048,), (2048,), dtype=BF16, name="long_rows_copied_ahead")
@program((150, 1028), (1028,), (1028,), dtype=F32, name="rows_copied_ahead_with_a_rest")
def rows_ahead(x, w, b):
    return [F.layer_norm(x, w.shape, w, b)]


# --- pieces of tensors ---
@program((6, 40, 32), (6, 12, 32))
@program((6, 40, 33), (6, 12, 33), dtype=BF16)
@program((3, 20, 8), (3, 10, 8), dtype=F64)
def pieces(x, y):
    n = y.shape[1]
    part = x[:, 3 : 3 + n] * y
    padded = F.pad(y, (0, 0, 2, 5)).exp()
    return [part, padded, x.slice_scatter(y * 2, 1, 1, 1 + n) + 1, x[:, 4].sin()]


# --- columns ---
COLUMNS = [
    [(4, 3)],
    [(16, 10)],
    [(64, 33)],
    [(100, 64)],
    [(300, 128)],
    [(1000, 4)],
    [(5000, 32)],
    [(3000, 1)],
    [(5, 6, 8)],
    [(40, 2000)],
]


@every(COLUMNS)
@every(COLUMNS[2:7], dtype=BF16)
def column_sums(x):
    return [x.sum(0), x.exp().mean(0), x.amax(0)]


@every([[(6, 32)], [(40, 65)], [(5, 8, 24)], [(700, 48)]])
def column_softmax(x):
    return [x.softmax(0), x - x.mean(0, keepdim=True), x / x.sum(1, keepdim=True) if x.dim() == 3 else x]


@every([[(4, 8, 6, 6), (8,), (8,)], [(2, 3, 5, 7), (3,), (3,)], [(64, 16), (16,), (16,)]])
def batch_norm(x, w, b):
    return [F.batch_norm(x, None, None, w, b, training=True).relu()]


def _channels_last(x):
    return x.to(memory_format=torch.channels_last) if x.dim() == 4 else x


@every([[(16, 48, 9, 9), (48,), (48,)], [((3, 5, 4, 4), BF16), (5,), (5,)]], layout=_channels_last)
def batch_norm_channels_last(x, w, b):
    y = F.batch_norm(x, None, None, w, b, training=True)
    return [F.silu(y + x), F.batch_norm(x, w.detach(), w.detach() ** 2, w, b)]


# --- all ---
@every([[(7,)], [(100, 100)], [(40000,)], [(3, 70000)], [(0,)], [()]])
def full_sums(x):
    return [x.sum(), (x * x).sum().sqrt()]


@every([[(3, 70000)], [(33000,)], [(2, 50257)]])
def long_rows(x):
    return [x.sum(-1), x.softmax(-1), x.amax(), x / x.abs().sum()]


@program((1, 3, 128, 128), (64, 3, 3, 3), (64,), dtype=BF16)
@program((1, 4, 128, 129), (64, 4, 2, 3), (64,), dtype=F16)
def narrow_convolution(x, w, b):
    """Products of patches; an input has no gradient."""
    images = x.detach().to(memory_format=torch.channels_last)
    return [F.conv2d(images, w, b, padding=1), F.conv2d(images, w.sin(), stride=(1, 2), padding=(0, 2))]


@program((2, 2, 256, 250), (48, 2, 3, 5), dtype=BF16)
def wide_patches(x, w):
    images = x.detach().to(memory_format=torch.channels_last)
    return [F.conv2d(images, w, stride=2, padding=(2, 4), dilation=(3, 2)).relu()]


@every([[(136, 20011)]])
@every([[(133, 33000)]], dtype=BF16)
def rows_in_shared_memory(x):
    return [x.softmax(-1), F.layer_norm(x, x.shape[-1:])]


# Rows that begin anywhere in memory.
@every([[(5, 1025)], [(3, 3001)], [(5, 12345)]])
@every([[(5, 2051)], [(134, 33001)]], dtype=BF16)
@program((6, 1100), layout=lambda t: t[:, 3:1090])
@program((6, 1200), layout=lambda t: t[1:, 7:1098:1], dtype=F16)
@program((4, 1037), symbolic=[[0, 1]], name="symbolic_odd_rows")
def odd_rows(x):
    return [x.softmax(-1), x.log_softmax(-1) * 2, (x * x).sum(-1), x + x.amax(-1, keepdim=True)]


@program((5, 9001), name="masked_rows", grad=False)
@program((5, 33001), name="masked_rows_in_shared_memory", grad=False)
@program((3, 70001), name="masked_long_rows", grad=False)
def masked_rows(x):
    """Rows of which the beginning, the end or all is -inf; one with inf, one with NaN."""
    places = torch.arange(x.shape[1], device=x.device)
    x = torch.where(places < x.shape[1] // 2, x, float("-inf"))
    rows = torch.arange(x.shape[0], device=x.device)[:, None]
    x = torch.where(rows == 1, x.flip(1), x)
    x = torch.where(rows == 2, float("-inf"), x)
    x = torch.where((rows == 3) & (places == 5), float("inf"), x)
    x = torch.where((rows == 4) & (places == 6), float("nan"), x)
    return [x.contiguous().softmax(-1), x.log_softmax(-1)]


@program((64, 10), ((64,), torch.int64))
def loss(x, target):
    return [F.cross_entropy(x, target), F.mse_loss(x, x.detach() * 0.5)]


@program(((70, 90), torch.int64), ((70, 90), torch.bool), ((70, 90), torch.uint8), grad=False)
def whole_reductions(x, flags, small):
    return [
        x.sum(), x.sum(0), x.sum(1), flags.any(), flags.all(1), flags.any(0), flags.sum(), small.sum(1), x.amax(1),
        x.amin(0), small.amax(0),
    ]  # fmt: skip


# --- sizes that vary ---
@program((6, 16), symbolic=[[0]], name="symbolic_rows")
@program((6, 16), symbolic=[[0, 1]], name="symbolic_both")
@program((37, 40), symbolic=[[0, 1]], name="symbolic_odd")
@program((1500, 8), symbolic=[[0]], name="symbolic_long")
def symbolic(x):
    return [x.softmax(-1) * 2, x.sum(0), x.exp().sum(), F.layer_norm(x, x.shape[1:]) if False else x + 1, x.t() * 3]


# --- many small kernels as one launch ---
@program((300,), (16, 4), (7,), (300,), (16, 4), (7,), grad=False, name="updates")
@program(*[(17 + 5 * i % 90,) for i in range(80)] * 2, grad=False, name="updates_of_several_launches")
@program((300,), (64,), (300,), (64,), grad=False, name="unaligned_updates", layout=lambda t: t.flatten()[1:])
def updates(*tensors):
    half = len(tensors) // 2
    return [p - 0.1 * d for p, d in zip(tensors[:half], tensors[half:], strict=True)]


# --- a model ---
@program((4, 12, 32), (96, 32), (32, 32), (32,), (32,), (64, 32), (32, 64))
def block(x, wqkv, wo, g, b, w1, w2):
    y = F.layer_norm(x, (32,), g, b)
    q, k, v = (y @ wqkv.t()).view(4, 12, 3, 2, 16).permute(2, 0, 3, 1, 4)
    scores = (q @ k.transpose(-1, -2)) / 4
    mask = torch.ones(12, 12, dtype=torch.bool, device=x.device).tril()
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    x = x + (weights @ v).transpose(1, 2).reshape(4, 12, 32) @ wo.t()
    return [x + F.gelu(x @ w1.t(), approximate="tanh") @ w2.t()]


@program([2, 3, 5, 8], [2, 3, 5, 8], [2, 3, 5, 8], grad=False)
def parts_of_a_permuted_stack(q, k, v):
    """Gradients of an attention's operands, as its projection gets them; none of the parts is computed."""
    together = torch.stack([q, k, v]).permute(1, 3, 0, 2, 4).reshape(10, 72)
    return [together, together.sum(0), torch.stack([q, k], 1) + 1, torch.stack([q, k, v, q], 3).exp()]


@program([4, 6], [4, 6], dtype=torch.int32, grad=False)
def parts_of_whole_numbers(a, b):
    return [torch.stack([a, b, a]).sum((1, 2)), torch.stack([a, b], 1) * torch.stack([b, a], 1)]
