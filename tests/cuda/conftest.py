"""Makes the corpus, and the samples of operators, importable by name."""

import pathlib
import sys

for folder in ("cuda", "ops"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))
