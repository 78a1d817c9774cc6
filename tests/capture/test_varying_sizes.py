"""Sizes that vary from call to call: which dimensions become symbolic and when, and what programs do with sizes."""

import pytest
import torch
import torch.nn.functional as F
from judging import regions, run_once, same
from torch import nn

import graphlift


def ranges(x):
    return sum(x[i] * i for i in range(x.shape[0]))  # a loop needs the number itself


def python_arithmetic(x):
    n = x.shape[0]
    half, rest = divmod(n, 2)
    bits = (n & 3) + (n >> 1) + (n << 2) + n**2
    return x * (n // 3 + n % 4 - half * 2 + max(n, 2) + min(rest, 1) + bits), x.numel() * 2 - len(x)


def slices(x):
    n = x.size(0)
    return x[: n // 2], x[n // 2 :], x[1:-1], x[-2:], x[:, 1:], x[::2], x.narrow(0, 1, n - 2)


def reshapes(x):
    n, m = x.shape
    flat = x.reshape(-1)
    return flat.view(m, -1), x.view(n, 1, m), x.flatten().unflatten(0, (n, m)), x.unsqueeze(0).expand(3, -1, -1), x.T


def concatenations(x):
    return torch.cat([x, x[:1]]), torch.stack([x, x * 2], 1), torch.cat([x.new_zeros(2, x.shape[1]), x]), x.repeat(2, 1)


def masks(x):
    n = x.shape[0]
    causal = torch.ones(n, n, dtype=torch.bool).tril()
    length = torch.arange(n) < n - 1
    scores = (x @ x.T).masked_fill(~causal, float("-inf"))
    return scores.softmax(-1), torch.where(length[:, None], x, 0.0), torch.triu(x @ x.T, 1)


def means(x):
    return x.mean(0), x.sum() / x.shape[0], F.layer_norm(x, x.shape[1:]), x.cumsum(0), x.softmax(0)


def splits(x):
    a, b = x.split([2, x.shape[0] - 2])
    return a, b, x.chunk(2)[0], x.unfold(0, 2, 1), x.sort(0)[0], x.topk(2, 0)[0]


def roots(x):
    n = x.shape[0]
    return x * n**0.5 + float(n) / 7, int(n / 2), x.var(0)  # its gradient divides by a number


def texts(x):
    return x + 1, f"{x.shape[0]:03d} {tuple(x.shape)} {x.shape} {[x.shape[0]]!r}", repr(x.shape), [0] * x.shape[0]


def in_place(x):
    y = torch.zeros(x.shape[0] + 1, x.shape[1], dtype=x.dtype)
    y[: x.shape[0]] = x
    y[-1].fill_(x.shape[0])
    y[1:].add_(y[:-1].clone())
    return y


def padded(x):
    return F.pad(x, (0, 1, 2, 0)), F.pad(x[None, None], (1, 1, 1, 1), mode="reflect"), x.roll(1, 0), x.flip(0)


def resized(x):
    n, m = x.shape
    return [
        F.interpolate(x[None, None], size=(2 * n, m + 1), mode="bilinear", align_corners=True),
        F.interpolate(x[None], scale_factor=3),
        F.interpolate(x[None, None], scale_factor=(2, 1), mode="bicubic"),
        F.interpolate(x.T[None], size=n + 2, mode="linear"),
    ]


def embedded(x):
    places = torch.arange(x.shape[0]).remainder(7)
    return F.embedding(places, torch.ones(7, 2) * 3).sum(0), F.one_hot(places, 7), torch.bucketize(x, x[0])


# name: program, and regions once a second size was seen
PROGRAMS = {
    "arithmetic": (python_arithmetic, 2),
    "slices": (slices, 2),
    "reshapes": (reshapes, 2),
    "concatenations": (concatenations, 2),
    "masks": (masks, 2),
    "means": (means, 2),
    "splits": (splits, 2),
    "in place": (in_place, 2),
    "padded": (padded, 2),
    "embedded": (embedded, 2),
    "resized": (resized, 2),
}
SIZES = (6, 9, 12, 7, 30, 6, 11)


def batch(n, width=3):
    return (torch.linspace(-1, 1, n * width, dtype=torch.float64).reshape(n, width).requires_grad_(),)


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_regions_for_all_sizes(name):
    program, graphs = PROGRAMS[name]
    compiled = graphlift.compile(program)
    for n in SIZES:
        same(run_once(compiled, lambda n=n: batch(n)), run_once(program, lambda n=n: batch(n)))
    regions(graphs, 0)


@pytest.mark.parametrize("program", [ranges, roots, texts], ids=lambda f: f.__name__)
def test_what_needs_the_number_is_compiled_for_each(program):
    compiled = graphlift.compile(program)
    for n in (6, 9, 6, 4, 9):
        same(run_once(compiled, lambda n=n: batch(n)), run_once(program, lambda n=n: batch(n)))
    assert graphlift.graph_count() == 3 and graphlift.counters()["graph_breaks"] == 0


LAYERS = {
    "convolution": (lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1), lambda n: torch.randn(2, 2, n, n + 1)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), lambda n: torch.randn(2, 2, n, n + 1)),
    "one dimension": (lambda: nn.Conv1d(2, 3, 3, dilation=2), lambda n: torch.randn(2, 2, n)),
    "max pool": (lambda: nn.MaxPool2d(3, 2, ceil_mode=True), lambda n: torch.randn(2, 2, n, n + 1)),
    "average pool": (lambda: nn.AvgPool2d(2, 2), lambda n: torch.randn(2, 2, n, n + 1)),
    "adaptive pool": (lambda: nn.AdaptiveAvgPool2d(1), lambda n: torch.randn(2, 2, n, n + 1)),
    "batch norm": (lambda: nn.BatchNorm2d(2), lambda n: torch.randn(n, 2, 3, 3)),
    "upsample": (lambda: nn.Upsample(scale_factor=2), lambda n: torch.randn(1, 2, n, n + 1)),
    "attention": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        lambda n: torch.randn(2, n, 8),
    ),
    "scaled down": (lambda: nn.Upsample(scale_factor=0.5, mode="bilinear"), lambda n: torch.randn(1, 2, n, n + 1)),
    "cell": (lambda: nn.GRUCell(3, 4), lambda n: torch.randn(n, 3)),
    "recurrent": (lambda: nn.GRU(3, 4, batch_first=True), lambda n: torch.randn(n, 5, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    make, inputs = LAYERS[name]
    torch.manual_seed(0)
    layer = make()
    compiled = graphlift.compile(lambda x: layer(x))
    for n in (8, 11, 6, 8, 14):
        torch.manual_seed(n)
        x = inputs(n)
        results = [run_once(f, lambda x=x: (x.clone().requires_grad_(),)) for f in (compiled, layer)]
        same(*results)
    regions(2, 0)


MATMULS = {
    "batch by matrix": ((0, 3, 4), (4, 5)),
    "batch by vector": ((2, 0, 4), (4,)),
    "matrix by batch": ((5, 4), (0, 4, 3)),
    "vector by batch": ((4,), (0, 4, 3)),
    "batches": ((2, 0, 4), (2, 4, 0)),
    "batches of batches": ((2, 3, 0, 4), (3, 4, 0)),
    "one for all": ((1, 3, 0, 4), (2, 1, 4, 5)),
    "inner": ((2, 3, 0), (2, 0, 3)),
}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("grad", [(), (0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("name", MATMULS)
def test_products_of_any_batches(name, grad, transposed):
    """0 in a shape: what varies."""

    def program(a, b):
        if transposed:
            a, b = a.clone().mT.contiguous().mT if a.dim() > 1 else a, b * 1
        return torch.matmul(a, b).tanh()

    def operands(n):
        torch.manual_seed(n)
        shapes = [[n if size == 0 else size for size in shape] for shape in MATMULS[name]]
        return [torch.randn(shape, requires_grad=i in grad) for i, shape in enumerate(shapes)]

    compiled = graphlift.compile(program, fullgraph=True)
    for n in (4, 6, 7, 9):
        one, other = operands(n), operands(n)
        expected, got = program(*one), compiled(*other)
        torch.testing.assert_close(got, expected)
        assert got.stride() == expected.stride()
        if grad:
            for result in (expected, got):
                result.square().sum().backward()
            for a, b in zip(one, other, strict=True):
                torch.testing.assert_close(b.grad, a.grad)
    regions(2, 0)


@pytest.mark.parametrize(
    "shapes", [((0, 3, 4), (5, 6)), ((0, 3, 4), (5,)), ((2, 0, 4), (3, 4, 5)), ((2, 0, 4), (2, 5, 3))]
)
def test_products_that_do_not_fit(shapes):
    def outcome(function, n):
        try:
            return function(*(torch.ones([size or n for size in shape]) for shape in shapes))
        except RuntimeError as error:
            return str(error)

    compiled = graphlift.compile(torch.matmul, dynamic=True)
    for n in (4, 6):
        expected = outcome(torch.matmul, n)
        assert isinstance(expected, str)
        assert outcome(compiled, n) == expected


@pytest.mark.parametrize("how", ["autocast", "vmap", "grad"])
def test_products_of_any_batches_within(how):
    weight = torch.randn(4, 5)

    def program(x):
        if how == "autocast":
            with torch.autocast("cpu", torch.bfloat16):
                return x @ weight
        if how == "vmap":
            return torch.vmap(lambda row: row @ weight)(x)
        return torch.func.grad(lambda t: (t @ weight).sin().sum())(x)

    compiled = graphlift.compile(program, fullgraph=how != "grad")  # torch 2.11 asks for numbers there: a break
    for n in (4, 6, 7, 9):
        x = torch.randn(n, 3, 4)
        torch.testing.assert_close(compiled(x), program(x))


def test_dynamic_from_the_first_call_or_never():
    def program(x):
        return x * x.shape[0]

    for dynamic, graphs in ((None, 2), (True, 1), (False, 4)):
        graphlift.reset()
        compiled = graphlift.compile(program, dynamic=dynamic)
        for n in (5, 6, 7, 8, 5):
            assert torch.equal(compiled(torch.ones(n)), program(torch.ones(n)))
        regions(graphs, 0)


def test_sizes_zero_and_one_have_regions_of_their_own():
    def program(x, y):
        return (x * 2 + y).sum(0), x.shape[0] == 1

    for dynamic in (None, True):
        graphlift.reset()
        compiled = graphlift.compile(program, dynamic=dynamic)
        for n in (5, 6, 1, 0, 7, 1, 0):
            arguments = torch.ones(n, 2), torch.full((5 if n == 1 else n, 2), 3.0)
            same(compiled(*arguments), program(*arguments))
        assert graphlift.graph_count() == (4 if dynamic is None else 3)


def test_marks():
    def program(x):
        return x * 2 + x.shape[0]

    def run(mark, sizes, dynamic=None):
        graphlift.reset()
        compiled = graphlift.compile(program, dynamic=dynamic)
        for n in sizes:
            x = torch.ones(n, 2)
            mark(x)
            assert torch.equal(compiled(x), program(x))
        return graphlift.graph_count()

    sizes = (5, 6, 7, 8)
    assert run(lambda x: graphlift.mark_dynamic(x, 0), sizes) == 1
    assert run(lambda x: graphlift.maybe_mark_dynamic(x, 0), sizes) == 1
    assert run(lambda x: graphlift.mark_static(x), sizes) == 4
    assert run(lambda x: graphlift.mark_static(x, 0), sizes, dynamic=True) == 4
    assert run(lambda x: graphlift.mark_static(x, 1), sizes, dynamic=True) == 1


def test_equal_sizes_of_two_inputs_are_a_condition():
    def program(x, y):
        return x + y  # broadcasts where one of them is 1 long

    compiled = graphlift.compile(program, dynamic=True)
    for n, m in ((5, 5), (7, 7), (1, 6), (6, 1), (8, 8)):
        assert torch.equal(compiled(torch.ones(n), torch.ones(m)), program(torch.ones(n), torch.ones(m)))
    for f in (program, compiled):
        with pytest.raises(RuntimeError, match="must match the size"):
            f(torch.ones(3), torch.ones(4))


def test_conditions_on_sizes_are_inequalities(logged):
    graphlift.set_logs("guards")

    def program(x):
        return x * 2 if x.shape[0] * 2 + 1 < 20 else x * 3

    compiled = graphlift.compile(program, dynamic=True)
    for n in (5, 8, 9, 10, 30, 2):
        assert torch.equal(compiled(torch.ones(n)), program(torch.ones(n)))
    regions(2, 0)
    words = "\n".join(logged("guards"))
    assert "<" in words or ">" in words, words


def test_a_size_that_is_data():
    def program(x):
        kept = x[x > 0]
        places = x.nonzero()
        return kept * 2 + kept.shape[0], places + 1, torch.ones(int(x[0]) + 4) * 3

    compiled = graphlift.compile(program)
    for k in range(6):
        x = torch.linspace(-2, 1 + k, 8)
        same(compiled(x), program(x))
    counts = graphlift.counters()
    assert counts["graph_breaks"] >= 1 and counts["given_up"] == 0 and counts["graphs"] <= 8, counts
