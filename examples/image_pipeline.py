"""An image library in the middle of a compiled function: what can't be captured runs for real, the rest is compiled.

    python examples/image_pipeline.py

Pillow (or OpenCV, when Pillow is not there) blurs the picture between two pieces of tensor code. Exits non-zero when
the result differs from eager's.
"""

import sys

import numpy
import torch

import graphlift

try:
    from PIL import Image, ImageFilter
except ImportError:
    Image = None
try:
    import cv2
except ImportError:
    cv2 = None


def blur(pixels):
    """Height x width x 3 bytes in, the same out."""
    if Image is not None:
        return numpy.asarray(Image.fromarray(pixels).filter(ImageFilter.BoxBlur(2)))
    return cv2.blur(pixels, (5, 5))


def augment(picture, weights):
    """Contrast as tensor code, blur by the library, then a small convolution."""
    mean = picture.mean(dim=(1, 2), keepdim=True)
    contrast = ((picture - mean) * 1.3 + mean).clamp(0, 1)
    pixels = (contrast * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy()
    blurred = torch.from_numpy(blur(pixels).copy()).permute(2, 0, 1).to(torch.float32) / 255
    features = torch.nn.functional.conv2d(blurred[None], weights, padding=1)
    return torch.relu(features) - contrast.mean()


def main():
    if Image is None and cv2 is None:
        print("this example needs Pillow or OpenCV: pip install pillow  (or: pip install opencv-python-headless)")
        return 0
    torch.manual_seed(0)
    weights = torch.randn(8, 3, 3, 3)
    compiled = graphlift.compile(augment)
    same = True
    for size in (64, 96, 64):
        picture = torch.rand(3, size, size)
        same &= torch.allclose(compiled(picture, weights), augment(picture, weights), atol=1e-5)
    print(f"regions: {graphlift.graph_count()}")
    for reason, count in graphlift.counters()["graph_break"].items():
        print(f"{count} x {reason}")
    print("equal to eager" if same else "MISMATCH with eager")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
