"""Lets the tests of this folder import the modules beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
# What the co-simulation benchmark couples is coupled as FMUs here.
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
