"""``python -m biella``: the command `biella`, where that is not on the path."""

import sys

from biella.cli import main

sys.exit(main())
