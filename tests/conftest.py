"""What every test relies on. Must not import torch: the torch-free tests run on interpreters that have none."""

import os
import sys
from pathlib import Path

os.environ.setdefault("GRAPHLIFT_STRICT", "1")
os.environ.setdefault("OMP_NUM_THREADS", "2")
sys.path.insert(0, str(Path(__file__).parent))
if "PYTEST_XDIST_WORKER" in os.environ:  # a thread that waits leaves its core to the other workers
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
__import__("build_folder")

# Random tests search anew with every run by hand; a run that gates a change repeats itself.
if os.environ.get("CI"):
    try:
        import hypothesis
    except ImportError:  # the torch-free tests of other interpreters do without
        pass
    else:
        hypothesis.settings.register_profile("ci", derandomize=True)
        hypothesis.settings.load_profile("ci")
