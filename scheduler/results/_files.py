"""Output files: what may be replaced, locks, and writing a file whole or not at all.

An existing file is replaced only if nothing of the user's is lost: the target must be an empty
file or, for a recording, an earlier result file of biella. Device nodes, pipes and folders are
never replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from ._signals import ResultError

_LOCKED_BYTE = 1 << 20  # beyond the process id, which others read
_LOCK_ATTEMPTS = 100


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; it takes the place of `path` when the block succeeds.

    If the block fails, the temporary file is removed and whatever was at `path` stays untouched.
    A symbolic link is followed.

    Raises
    ------
    ResultError
        If `path` is something else than a file, or the system refuses: no such folder, no
        permission, a full disk.
    """
    target = find_target(path)
    temporary = temporary_name(target)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except (OSError, RuntimeError) as error:
        raise ResultError(f"{explain(error, target)} The file is unchanged.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def temporary_name(target: Path) -> Path:
    """Return an unused hidden name beside `target`, with the same extension."""
    return target.with_name(f".{target.stem}-{secrets.token_hex(4)}{target.suffix}")


def find_target(path: str | Path) -> Path:
    """Return the file that `path` names, through symbolic links.

    Raises
    ------
    ResultError
        If there is something else than a file: a folder, a device, a pipe.
    """
    target = Path(path)
    if target.is_symlink():
        target = Path(os.path.realpath(target))
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return target
    except OSError as error:
        raise ResultError(explain(error, target)) from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file (a device, pipe or socket)"
        raise ResultError(f"Cannot write `{path}`: it is {kind}, and is not replaced.")
    return target


def find_recording_target(path: str | Path, is_recording: Callable[[Path], bool]) -> Path:
    """Return the file that `path` names, if a recording may be written there.

    Raises
    ------
    ResultError
        If there is no such folder, or there is a file that is neither empty nor a recording.
    """
    target = find_target(path)
    if not target.parent.is_dir():
        raise ResultError(f"Cannot write `{path}`: there is no folder `{target.parent}`.")
    try:
        foreign = target.exists() and target.stat().st_size > 0 and not is_recording(target)
    except OSError as error:
        raise ResultError(explain(error, target)) from error
    if foreign:
        raise ResultError(
            f"Cannot write `{path}`: the existing file is not a biella result and is not "
            f"replaced. Choose another name, or remove the file first."
        )
    return target


class TargetLock:
    """Exclusive right to write a file, until it is released or the process ends.

    The lock is held on a hidden file beside the target, ``.NAME.lock``, not on the target itself:
    HDF5 locks that, and other programs could not read it during a run. The hidden file is removed
    with the lock. A killed process leaves it behind, unlocked, and the next run uses it again.

    Raises
    ------
    ResultError
        If another run writes the same file, in this process or in another one.
    """

    def __init__(self, target: Path) -> None:
        path = target.with_name(f".{target.name}.lock")
        for _ in range(_LOCK_ATTEMPTS):
            try:
                handle = _open_lock(path)
            except OSError as error:
                raise ResultError(explain(error, target)) from error
            if not _try_lock(handle):
                owner = _read_owner(handle)
                os.close(handle)
                raise ResultError(
                    f"Cannot write `{target}`: another run{owner} is recording to it. Choose "
                    f"another name, or wait for the end of that run."
                )
            # Whoever had it before may have removed the file after it was opened here.
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    break
            os.close(handle)
        else:
            raise ResultError(f"Cannot write `{target}`: its lock `{path}` cannot be taken.")
        with contextlib.suppress(OSError):  # on a full disk the message has no number
            os.truncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
        self._handle = handle
        self.release = weakref.finalize(self, _release, handle, path, os.getpid())
        _locks.add(self)


_locks: weakref.WeakSet[TargetLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """Close the handles of a forked child: the lock of a killed parent would be held by them."""
    for lock in _locks:
        if lock.release.detach():
            os.close(lock._handle)
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)


def _open_lock(path: Path) -> int:
    no_link = getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | no_link, 0o666)
    except PermissionError:  # another user's, left by a kill, may still be read and locked
        if not path.exists():
            raise
        return os.open(path, os.O_RDONLY | no_link)


def _release(handle: int, path: Path, owner: int) -> None:
    if os.getpid() != owner:  # a forked copy: the lock is the parent's
        return
    if os.name == "posix":  # unlock explicitly: forked children have the handle, too
        with contextlib.suppress(OSError):
            path.unlink()
        _unlock(handle)
    os.close(handle)
    if os.name != "posix":
        with contextlib.suppress(OSError):
            path.unlink()


def _read_owner(handle: int) -> str:
    with contextlib.suppress(OSError, ValueError):
        os.lseek(handle, 0, os.SEEK_SET)
        number = int(os.read(handle, 20))
        return " of this process" if number == os.getpid() else f" (process {number})"
    return ""


if os.name == "posix":
    import fcntl

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            pass
        return True

    def _unlock(handle: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)

else:

    def _try_lock(handle: int) -> bool:
        import msvcrt

        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
        return True


def is_locked(target: Path) -> bool:
    """Return whether a run is recording to a file, in this process or in another one."""
    path = target.with_name(f".{target.name}.lock")
    try:
        handle = os.open(path, os.O_RDWR)
    except PermissionError:
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            return False
    except OSError:
        return False
    free = _try_lock(handle)
    if free and os.name == "posix":
        _unlock(handle)
    os.close(handle)
    return not free


class RecordingTarget:
    """Where a recording is written: under its own name, or beside an earlier recording at first.

    An earlier recording is replaced only when the new one has rows on the disk. Until then the new
    one is beside it, as ``name.new.h5`` for ``name.h5``; it stays there if it gets no rows.

    Attributes
    ----------
    path
        The file by its final name.
    current
        The file as it is named now.
    """

    def __init__(self, path: str | Path, is_recording: Callable[[Path], bool]) -> None:
        self.path = find_recording_target(path, is_recording)
        self._locks = [TargetLock(self.path)]
        try:
            # Looked at again: it may have changed before it was locked.
            find_recording_target(path, is_recording)
            self._replaces = self.path.exists() and self.path.stat().st_size > 0
            self._beside = self.path.with_name(f"{self.path.stem}.new{self.path.suffix}")
            if self._replaces:
                self._locks.append(TargetLock(self._beside))
                find_recording_target(self._beside, is_recording)
        except BaseException:
            self.release()
            raise
        self.current = temporary_name(self.path)

    @property
    def pending(self) -> bool:
        """Whether an earlier recording still has the final name."""
        return self.current != self.path

    def show(self) -> None:
        """Give the new file, which can be read from now on, a name that is easy to find."""
        self._move(self._beside if self._replaces else self.path)

    def settle(self) -> None:
        """Replace the earlier recording, if there is one."""
        if self.pending:
            self._move(self.path)
            self._release(self._locks[1:])

    def _move(self, path: Path) -> None:
        os.replace(self.current, path)
        self.current = path

    def abandon(self) -> None:
        """Remove a file that was never shown, and release the lock."""
        with contextlib.suppress(OSError):
            self.current.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Let others write the file."""
        self._release(self._locks)

    @staticmethod
    def _release(locks: list[TargetLock]) -> None:
        for lock in locks:
            lock.release()


def explain(error: OSError | RuntimeError, path: Path) -> str:
    """Return a sentence on why `path` could not be written; HDF5 gives some causes only as text."""
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
