"""`python -m tests.soak`: see `soak.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from soak import main

sys.exit(main())
