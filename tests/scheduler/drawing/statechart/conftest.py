"""Machines to draw are found beside the tests, random ones beside those of the block."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "blocks" / "machines")]
