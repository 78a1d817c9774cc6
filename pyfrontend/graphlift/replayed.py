"""What regions call behind themselves in place of what the program called while it was captured.

Owns calls that need more than the program's own arguments. Must not import torch.
"""

import sys
import warnings


def warn(message: str, category: type, filename: str, lineno: int, module: str) -> None:
    """warnings.warn as the given line of the given module, which is in sys.modules, would have done it."""
    registry = vars(sys.modules[module]).setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, filename, lineno, module, registry)


def set_torch_function_state(name: str) -> None:
    """What torch._C.DisableTorchFunctionSubclass switches, by the name in torch._C._TorchFunctionState."""
    _C = sys.modules["torch._C"]
    _C._set_torch_function_state(getattr(_C._TorchFunctionState, name))
