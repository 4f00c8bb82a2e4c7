"""Modules beside these tests are found by their names, also by docs/validation.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
