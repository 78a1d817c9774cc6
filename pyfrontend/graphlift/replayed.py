"""What regions call behind themselves in place of what the program called while it was captured.

Owns calls that need more than the program's own arguments. Must not import torch.
"""

import logging
import sys
import warnings


def warn(message: str, category: type, filename: str, lineno: int, module: str) -> None:
    """warnings.warn as the given line of the given module, which is in sys.modules, would have done it."""
    registry = vars(sys.modules[module]).setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, filename, lineno, module, registry)


def log(
    logger: logging.Logger, level: int, filename: str, lineno: int, function: str, message: object, *args: object
) -> None:
    """A method of the logger, as the given line of the given function would have called it."""
    if logger.isEnabledFor(level):
        logger.handle(logger.makeRecord(logger.name, level, filename, lineno, message, args, None, function))


def set_torch_function_state(name: str) -> None:
    """What DisableTorchFunctionSubclass switches, by the state's name in torch's enumeration."""
    torch_core = sys.modules["torch._C"]
    torch_core._set_torch_function_state(getattr(torch_core._TorchFunctionState, name))


def set_data(tensor, value) -> None:
    """tensor.data = value"""
    tensor.data = value
