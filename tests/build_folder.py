"""The build folder of the tests: its modules, graphlift._C among them, become importable by importing this file.

GRAPHLIFT_BUILD names the build folder; without it, build/<cache tag> below the repository. Must not import torch: the
torch-free tests run on interpreters that have none.
"""

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("GRAPHLIFT_BUILD") or ROOT / "build" / sys.implementation.cache_tag)
MODULES = BUILD / "modules"

for place in (str(MODULES), str(ROOT / "pyfrontend")):
    if place not in sys.path:
        sys.path.insert(0, place)


class _BuiltExtension:
    """Finds graphlift._C in the build folder that was asked for, before the one beside the package."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "graphlift._C":
            return None
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            file = MODULES / f"_C{suffix}"
            if file.exists():
                return importlib.util.spec_from_file_location(name, file)
        return None


sys.meta_path.insert(0, _BuiltExtension)
