"""Generated kernels on a GPU: results are eager's."""

import kernel_corpus as corpus
import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.usefixtures("exact_products"),
]


def test_there_are_kernels():
    assert corpus.runtime.cuda_refusal(0) == ""


@pytest.mark.parametrize("name, check", list(corpus.programs("cuda", "cuda")))
def test_programs(name, check):
    assert check() is None


@pytest.mark.parametrize("name, check", list(corpus.tiled("cuda", "cuda")))
def test_other_tilings(name, check):
    assert check() is None


@pytest.mark.parametrize("name, check", list(corpus.operators("cuda", "cuda")))
def test_operators(name, check):
    assert check() is None


@pytest.mark.parametrize("name, check", list(corpus.random("cuda", "cuda")))
def test_random_programs(name, check):
    assert check() is None
