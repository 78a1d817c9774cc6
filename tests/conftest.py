"""What every test relies on. Must not import torch: the torch-free tests run on interpreters that have none."""

import os
import sys
from pathlib import Path

os.environ.setdefault("GRAPHLIFT_STRICT", "1")
os.environ.setdefault("OMP_NUM_THREADS", "2")
sys.path.insert(0, str(Path(__file__).parent))
__import__("build_folder")
