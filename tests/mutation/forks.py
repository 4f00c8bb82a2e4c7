"""Runs of pytest without the time that its imports take: a process that forks for each run.

Reads a line of JSON for each run, `[arguments, seconds of processor time, file for the output]`,
and answers with the exit code. What the copy of the checkout contains is imported by the fork.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import traceback
from pathlib import Path


def serve() -> None:
    """Answer until the input ends."""
    import h5py  # noqa: F401
    import networkx  # noqa: F401
    import numpy as np  # noqa: F401
    import pytest
    import scipy.linalg
    import scipy.optimize
    import scipy.signal  # noqa: F401

    sys.path.insert(0, os.getcwd())
    for line in sys.stdin:
        arguments, seconds, output = json.loads(line)
        child = os.fork()
        if child == 0:
            os.setsid()  # signals to the group are for the tests
            file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for number, handle in ((0, os.open(os.devnull, os.O_RDONLY)), (1, file), (2, file)):
                os.dup2(handle, number)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            code = 3
            try:
                code = int(pytest.main(arguments))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with contextlib.suppress(BrokenPipeError):  # the run was ended
            print(code, flush=True)


if __name__ == "__main__":
    assert "biella" not in sys.modules
    Path("build").mkdir(exist_ok=True)
    serve()
