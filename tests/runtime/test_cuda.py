"""Regions on a GPU: streams, the engine's device threads, tensors of two devices in one region."""

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def leaf(*shape):
    return torch.randn(*shape, device="cuda", requires_grad=True)


@pytest.fixture
def product(region):
    """x * y of two 3-vectors on the GPU, both wanting gradients."""
    x, y = region.input(leaf(3), gradient=0), region.input(leaf(3), gradient=1)
    t = region.tangent(leaf(3))
    region.output(region.call("aten::mul.Tensor", x, y), tangent=0, requires_grad=True, differentiable=True)
    region.gradient(region.call("aten::mul.Tensor", t, y, backward=True))
    region.gradient(region.call("aten::mul.Tensor", t, x, backward=True))
    return region.build()


def test_forward_and_backward(product):
    x, y = leaf(3), leaf(3)
    (z,) = product([x, y])
    assert torch.equal(z, x * y)
    z.sum().backward()
    assert torch.equal(x.grad, y)
    assert torch.equal(y.grad, x)


def test_side_stream(product):
    x, y = leaf(3), leaf(3)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(20):
            z = product([product([x, y])[0], y])[0]
        z.sum().backward()
    torch.cuda.current_stream().wait_stream(stream)
    torch.testing.assert_close(x.grad, (y * y).detach())
    torch.testing.assert_close(y.grad, (2 * x * y).detach())


def test_input_changed_in_place_is_noticed(product):
    x, y = leaf(3), leaf(3)
    (z,) = product([x, y])
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_scalar_of_the_cpu_and_a_copy_to_it(region):
    x, scale = region.input(leaf(3), gradient=0), region.input(torch.tensor(2.0))
    t = region.tangent(torch.randn(3))
    product = region.call("aten::mul.Tensor", x, scale)
    cpu = torch.device("cpu")
    moved = region.call("aten::_to_copy.default", product, None, None, cpu)
    region.output(moved, tangent=0, requires_grad=True, differentiable=True)
    back = region.call("aten::_to_copy.default", t, None, None, torch.device("cuda:0"), backward=True)
    region.gradient(region.call("aten::mul.Tensor", back, scale, backward=True))
    x = leaf(3)
    (y,) = region.build()([x, torch.tensor(3.0)])
    assert y.device.type == "cpu"
    y.sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 3.0, device="cuda"))


def test_random_numbers_follow_the_seed(region):
    x = region.input(torch.randn(64, device="cuda"))
    region.output(region.call("aten::native_dropout.default", x, 0.5, True)[0])
    run = region.build()
    x = torch.randn(64, device="cuda")
    torch.manual_seed(3)
    expected = torch.native_dropout(x, 0.5, True)[0]
    torch.manual_seed(3)
    assert torch.equal(run([x])[0], expected)
