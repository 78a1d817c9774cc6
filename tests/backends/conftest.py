"""Makes the samples of operators importable by name."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "ops"))
