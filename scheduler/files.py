"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from .signals import ResultError


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; it takes the place of `path` when the block succeeds.

    If the block fails, the temporary file is removed and whatever was at `path` stays untouched.

    Raises
    ------
    ResultError
        If the system refuses: no such folder, no permission, a full disk.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.stem}-{secrets.token_hex(4)}{target.suffix}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except (OSError, RuntimeError) as error:
        raise ResultError(f"{explain(error, target)} Nothing was changed there.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def claim_space(path: Path, start: int, size: int) -> None:
    """Claim `size` bytes after `start` of a file from the system, or raise OSError.

    HDF5 does not survive a write that fails: it cannot close the file, and takes the process with
    it. So the space is claimed before HDF5 asks for it.
    """
    if not hasattr(os, "posix_fallocate"):
        if shutil.disk_usage(path.parent).free < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return
    handle = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(handle, start, size)
    finally:
        os.close(handle)


def explain(error: OSError | RuntimeError, path: Path) -> str:
    """Say in a sentence why `path` could not be written; HDF5 gives some causes only as text."""
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error):
        reason = "the disk is full"
    elif number == errno.EFBIG or "File too large" in str(error):
        reason = "the file would be larger than the system allows"
    elif not path.parent.is_dir():
        reason = f"there is no folder `{path.parent}`"
    elif path.is_dir():
        reason = "it is a folder"
    elif number in (errno.EACCES, errno.EPERM, errno.EROFS):
        reason = "there is no permission to write"
    else:
        reason = getattr(error, "strerror", None) or str(error)
    return f"Cannot write `{path}`: {reason}."
