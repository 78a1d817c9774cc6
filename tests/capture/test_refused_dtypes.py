"""What eager refuses by the dtypes of operands is refused in its words, also where torch's kernels for the meta device
are more lenient; nothing of it is computed by kernels of graphlift."""

import pytest
import torch
from torch.nn import functional as F

import graphlift

BYTES, WHOLE = torch.tensor([1, 2], dtype=torch.uint8), torch.tensor([1, 2])
BOOLS, FLOATS = torch.tensor([True, False]), torch.ones(2)

PROGRAMS = {
    "a bool from bytes": lambda: BYTES - True,
    "bytes from a bool": lambda: True - BYTES,
    "a bool from floats": lambda: FLOATS - True,
    "sub": lambda: torch.sub(BYTES, True),
    "sub_": lambda: BYTES.clone().sub_(True),
    "rsub": lambda: torch.rsub(BYTES, True),
    "bools": lambda: BOOLS - BOOLS,
    "a number from bools": lambda: BOOLS - 1,
    "minus": lambda: -BOOLS,
    "abs": lambda: BOOLS.abs(),
    "relu": lambda: BOOLS.relu(),
    "gelu": lambda: F.gelu(WHOLE),
    "softmax": lambda: WHOLE.softmax(0),
    "mean": lambda: WHOLE.mean(),
    "var": lambda: WHOLE.var(),
    "std": lambda: BYTES.std(),
    "loss": lambda: F.mse_loss(WHOLE, WHOLE + 1),
    "not of floats": lambda: ~FLOATS,
    "and of floats": lambda: FLOATS & 1,
    "and with a float": lambda: BYTES & 1.5,
    "bitwise_and": lambda: torch.bitwise_and(FLOATS, FLOATS),
    "and in place": lambda: FLOATS.clone().__iand__(1),
    "a float into whole numbers": lambda: WHOLE.clone().add_(1.5),
    "quotients into whole numbers": lambda: WHOLE.clone().div_(2),
    "alpha": lambda: torch.add(BYTES, BYTES, alpha=1.5),
    "dtypes of a product": lambda: torch.ones(2, 2, dtype=torch.int64) @ torch.ones(2, 2),
    "a negative power": lambda: WHOLE**-1,
    "index": lambda: FLOATS[FLOATS],
}


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_error_is_eagers(name, backend):
    program = PROGRAMS[name]
    expected = outcome(program)
    assert isinstance(expected, tuple), "eager takes it now"
    compiled = graphlift.compile(program, backend=backend)
    for _ in range(2):
        assert outcome(compiled) == expected


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_the_program_goes_on_behind_it(backend):
    def program(x, y):
        try:
            return x.abs() + y
        except NotImplementedError:
            return y * 3

    compiled = graphlift.compile(program, backend=backend)
    for x in (FLOATS, BOOLS, FLOATS, BOOLS):
        torch.testing.assert_close(compiled(x, FLOATS), program(x, FLOATS))


@pytest.mark.parametrize("program", [torch.abs, torch.relu], ids=lambda f: f.__name__)
def test_sizes_that_vary(program):
    compiled = graphlift.compile(lambda x: program(x), dynamic=True)
    for size in (3, 5, 7):
        bools = torch.ones(size, dtype=torch.bool)
        assert outcome(lambda bools=bools: compiled(bools)) == outcome(lambda bools=bools: program(bools))
        torch.testing.assert_close(compiled(bools.float()), program(bools.float()))
