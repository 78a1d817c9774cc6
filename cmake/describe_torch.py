"""Prints what cmake/torch.cmake needs of the installed torch, as one CMake list."""

import os

import torch

root = os.path.dirname(os.path.abspath(torch.__file__))
fields = [
    torch.__version__,
    os.path.join(root, "include"),
    os.path.join(root, "lib"),
    str(int(torch._C._GLIBCXX_USE_CXX11_ABI)),
    "../torch/lib",
]
print(";".join(fields), end="")
