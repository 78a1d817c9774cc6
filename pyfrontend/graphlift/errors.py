"""Exceptions and the warning that users meet. The C++ side raises these very classes.

An exception of the user's own code is neither: it passes through compiled code unchanged.
"""


class GraphBreakError(RuntimeError):
    """A graph break where `fullgraph=True` allows none. The message names the reason, the place and a hint."""


class InternalError(RuntimeError):
    """A bug of graphlift. Raised with GRAPHLIFT_STRICT=1; otherwise the call runs in eager, with one warning."""


class GraphliftWarning(UserWarning):
    """Something that was to be compiled runs in eager from now on; the message says why."""
