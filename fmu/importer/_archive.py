"""FMU files: reading archives from untrusted sources, and unpacking them to temporary folders.

An unpacked FMU lies in a folder ``biella-fmu-…`` of the system's temporary folder. It is removed
when the last block that runs it is closed, else when the interpreter ends; what a killed process
left is removed by the next one that unpacks anything.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import hashlib
import lzma
import os
import platform
import shutil
import stat
import struct
import sys
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ...errors import FmuError, name_list
from ._encoding import read_text

LARGEST_COUNT = 50_000
LARGEST_SIZE = 2 << 30
"""Default limits of an archive; environment variables override them: see `largest_size`."""
COUNT_VARIABLE = "BIELLA_FMU_MAX_FILES"
SIZE_VARIABLE = "BIELLA_FMU_MAX_GIB"
LARGEST_DESCRIPTION = 256 << 20
_PREFIX = "biella-fmu-"
_SUFFIXES = {"linux": ".so", "win32": ".dll", "darwin": ".dylib"}
_NAMES = {"linux": "linux", "win32": "win", "darwin": "darwin"}
# The files and folders that FMI names, by their names in lower case.
_STANDARD = {
    name.lower(): name for name in ("modelDescription.xml", "binaries", "resources", "sources")
}


@dataclass(frozen=True, slots=True)
class Archive:
    """An FMU file that was checked: nothing in it leads outside the folder it is unpacked to."""

    path: Path
    digest: str
    """Of the whole file."""
    description: bytes
    """modelDescription.xml, without entities."""
    members: tuple[str, ...]
    """Its files, with forward slashes."""
    findings: tuple[str, ...] = ()
    """What is irregular about the file but does not prevent a run."""

    @property
    def platforms(self) -> list[str]:
        """The platforms that it has a binary for."""
        parts = (name.split("/") for name in self.members)
        return sorted({part[1] for part in parts if part[0] == "binaries" and len(part) > 2})


def largest_size() -> int:
    """Return how many bytes an FMU may unpack to: 2 GiB, or BIELLA_FMU_MAX_GIB."""
    return int(_limit(SIZE_VARIABLE, LARGEST_SIZE / (1 << 30)) * (1 << 30))


def largest_count() -> int:
    """Return how many files an FMU may hold: 50 000, or BIELLA_FMU_MAX_FILES."""
    return int(_limit(COUNT_VARIABLE, LARGEST_COUNT))


def _limit(variable: str, otherwise: float) -> float:
    text = os.environ.get(variable)
    if text is None:
        return otherwise
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 2**30:
        raise FmuError(
            f"the environment variable {variable} must be a positive number, got {text!r}."
        )
    return value


def read_archive(path: str | Path) -> Archive:
    """Check an FMU file and read its description, unpacking nothing.

    Raises
    ------
    FmuError
        If there is no such file, or it is damaged or suspicious.
    """
    path = Path(path)
    try:
        status = path.stat()
    except (OSError, ValueError) as error:  # a name may hold what no file system allows
        reason = getattr(error, "strerror", None) or error
        raise FmuError(f"cannot read the FMU `{path!s:.200}`: {reason}.") from error
    return _read(path.resolve(), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _read(path: Path, _changed: int, _size: int) -> Archive:
    findings: list[str] = []
    with _opened(path) as archive:
        members = _check_members(path, archive, findings)
        if "modelDescription.xml" not in members:
            raise FmuError(
                f"`{path}` is not an FMU: it has no modelDescription.xml at the top level. It "
                f"contains "
                f"{name_list(members, 6)}."
            )
        info = members["modelDescription.xml"]
        if info.file_size > LARGEST_DESCRIPTION:
            raise FmuError(
                f"the description in `{path}` has {info.file_size} bytes and is rejected."
            )
        with archive.open(info) as file:
            description = file.read(LARGEST_DESCRIPTION + 1)
    description, encoding = read_text(path, description)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Archive(path, digest, description, tuple(members), (*findings, *encoding))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except _DAMAGE as error:
        raise FmuError(
            f"`{path}` is damaged, or not an FMU: {_describe_corruption(path, error)}."
        ) from error
    except OSError as error:
        raise FmuError(f"cannot read `{path}`: {error.strerror or error}.") from error


def read_member(archive: Archive, name: str, limit: int = 64 << 20) -> bytes | None:
    """Return the contents of a file in an FMU; None if there is none of this name.

    Raises
    ------
    FmuError
        If the archive is damaged, or the file has more than `limit` bytes.
    """
    if name not in archive.members:
        return None
    with _opened(archive.path) as opened:
        info = _check_members(archive.path, opened, [])[name]
        with opened.open(info) as file:
            data = file.read(limit + 1)
    if len(data) > limit:
        raise FmuError(f"`{name}` in `{archive.path}` has more than {limit} bytes.")
    return data


# What zipfile and the libraries below it raise for bytes that are not an archive.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,  # NotImplementedError is one
    ValueError,  # UnicodeDecodeError is one
    OverflowError,
    struct.error,
    LookupError,
    AttributeError,
)


def _describe_corruption(path: Path, error: Exception) -> str:
    """Return what is wrong in words: a cut file is what is met most."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        if not isinstance(error, zipfile.BadZipFile) or str(error) != "File is not a zip file":
            return str(error)
        if file.read(4) == b"PK\x03\x04":
            return (
                f"it starts as a zip archive, but is truncated after {path.stat().st_size} "
                f"bytes. Copy or export it again"
            )
        return "it is not a zip archive"
    return str(error)


def _check_members(
    path: Path, archive: zipfile.ZipFile, findings: list[str]
) -> dict[str, zipfile.ZipInfo]:
    """Return the files by name, or refuse the whole archive.

    Of several files of one name the last counts, as for all that unpack archives.
    """
    infos = archive.infolist()
    most, limit = largest_count(), largest_size()
    if len(infos) > most:
        raise FmuError(
            f"`{path}` contains {len(infos)} files, more than {most}, and is rejected. If you "
            f"trust it, set "
            f"{COUNT_VARIABLE} to a larger number."
        )
    members: dict[str, zipfile.ZipInfo] = {}
    repeated: list[str] = []
    total = 0
    for info in infos:
        name = info.filename.replace("\\", "/")
        parts = PurePosixPath(name).parts
        if (
            name.startswith("/")
            or ".." in parts
            or any(":" in part or "\0" in part for part in parts)
            or not name
        ):
            raise FmuError(
                f"`{path}` has a file `{info.filename}`, whose path is outside the target "
                f"folder: the FMU is rejected."
            )
        if stat.S_ISLNK(info.external_attr >> 16):
            raise FmuError(
                f"`{path}` contains a symbolic link, `{info.filename}`: the FMU is rejected."
            )
        if info.flag_bits & 1:
            raise FmuError(f"`{path}` is encrypted: `{info.filename}`.")
        if info.is_dir() or name.endswith("/") or not parts:  # "./" is the folder itself
            continue
        name = _standard_name(parts, findings)
        total += info.file_size
        if total > limit:
            raise FmuError(
                f"`{path}` would unpack to more than {limit / (1 << 30):.3g} GiB and is "
                f"rejected. If you trust it, set {SIZE_VARIABLE} to a larger number "
                f"of GiB."
            )
        before = members.get(name)
        if before is not None and (before.CRC, before.file_size) != (info.CRC, info.file_size):
            repeated.append(name)
        members[name] = info
    if repeated:
        findings.append(
            f"it has several different files of one name: {name_list(repeated, 6)}. The last of "
            f"each is used. Check the origin of the file, or export it again."
        )
    return members


def _standard_name(parts: tuple[str, ...], findings: list[str]) -> str:
    """Return a path with its first part written as in the FMI standard."""
    first = _STANDARD.get(parts[0].lower(), parts[0])
    if first != parts[0]:
        finding = f"`{parts[0]}` in the archive must be written `{first}`."
        if finding not in findings:
            findings.append(finding)
    return "/".join((first, *parts[1:]))


def platform_folder() -> str:
    """Return what FMI 2.0 calls this platform."""
    bits = 64 if sys.maxsize > 2**32 else 32
    if platform.machine().lower() in ("x86_64", "amd64", "i386", "i686", "x86"):
        return f"{_NAMES.get(sys.platform, sys.platform)}{bits}"
    if sys.platform == "darwin":
        return "darwin64"  # holds both processors
    return f"{platform.machine()}-{_NAMES.get(sys.platform, sys.platform)}"


def platform_names() -> list[str]:
    """Return the names of this platform in FMI 2.0 and in FMI 3.0."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    system = {"linux": "linux", "win32": "windows", "darwin": "darwin"}.get(sys.platform, "")
    return [platform_folder(), f"{machine}-{system}"]


def find_binary(archive: Archive, identifier: str) -> str:
    """Return the binary for this platform; the error lists those available.

    A library whose name differs from the model identifier is used if it is the only one whose name
    is the same in lower case, or the only one at all.
    """
    suffix = _SUFFIXES.get(sys.platform, ".so")
    there: list[str] = []
    for folder in platform_names():
        name = f"binaries/{folder}/{identifier}{suffix}"
        if name in archive.members:
            return name
        prefix = f"binaries/{folder}/".lower()
        there += [m for m in archive.members if m.lower().startswith(prefix)]
    libraries = [m for m in there if m.count("/") == 2 and m.lower().endswith(suffix)]
    alike = [m for m in libraries if Path(m).stem.lower() == identifier.lower()]
    for found in (alike, libraries):
        if len(found) == 1:
            return found[0]
    name = f"binaries/{platform_folder()}/{identifier}{suffix}"
    if there:
        raise FmuError(f"`{archive.path}` has no `{name}`. It has {name_list(there, 6)}.")
    sources = any(name.startswith("sources/") for name in archive.members)
    hint = " It contains its sources: `fmpy compile` builds a binary from them." if sources else ""
    others = (
        f"It has those for {name_list(archive.platforms)}." if archive.platforms else "It has none."
    )
    raise FmuError(
        f"`{archive.path}` has no binary for this platform, {platform_folder()}. {others}{hint}"
    )


def provide_binary(folder: Path, archive: Archive, identifier: str) -> None:
    """Let an unpacked FMU have its binary also under the name that the FMI standard requires."""
    found = PurePosixPath(find_binary(archive, identifier))
    new = found.parts[1].lower() == platform_names()[1].lower()
    required = folder / "binaries" / platform_names()[new] / f"{identifier}{found.suffix}"
    if not required.exists():
        required.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder.joinpath(*found.parts), required)


class Folder:
    """An unpacked FMU, shared by all blocks of one process that run the same file."""

    _shared: dict[str, Folder] = {}  # noqa: RUF012 - the folders of this process
    _lock = threading.RLock()  # garbage collection may release a folder while one is acquired

    def __init__(self, archive: Archive) -> None:
        self.key = archive.digest
        self.users = 0
        self._owner = os.getpid()
        with _unpacking(archive.path):
            self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
            try:
                self._mark: Any = _lock(self.path)
            except BaseException:
                shutil.rmtree(self.path, ignore_errors=True)
                raise
        try:
            _extract(archive, self.path)
        except BaseException:
            self.remove()
            raise

    @classmethod
    def acquire(cls, archive: Archive) -> Folder:
        """Return the folder of `archive`, unpacked now if it is not; end with `release`."""
        with cls._lock:
            if not cls._shared:
                sweep()
            folder = cls._shared.get(archive.digest)
            if folder is not None:
                folder.users += 1
                # Its last user may have been collected before this one was counted.
                if cls._shared.get(archive.digest) is folder and folder.path.is_dir():
                    return folder
            folder = cls(archive)
            folder.users = 1
            cls._shared[archive.digest] = folder
            return folder

    def release(self) -> None:
        """Say that one user is done; the last one takes the folder away."""
        with self._lock:
            self.users -= 1
            if self.users <= 0 and self._shared.get(self.key) is self:
                del self._shared[self.key]
                self.remove()

    @classmethod
    def adopt(cls, archive: Archive, path: Path) -> None:
        """Have users of `archive` use a folder of the parent process, which also removes it."""
        folder = cls.__new__(cls)
        folder.key, folder.path, folder.users = archive.digest, path, 1
        folder._owner, folder._mark = os.getppid(), None
        cls._shared[archive.digest] = folder

    def remove(self) -> None:
        """Take the folder away, whoever uses it."""
        if os.getpid() != self._owner:  # a child: the parent uses it
            return
        _let_go(self._mark)
        shutil.rmtree(self.path, ignore_errors=True)

    @classmethod
    def remove_all(cls) -> None:
        """Take away what is still there when the interpreter ends."""
        for folder in cls._shared.values():
            folder.remove()
        cls._shared.clear()


atexit.register(Folder.remove_all)


def require_single_instance(flags: Any, folder: Folder, name: str) -> None:
    """Raise if an FMU that allows one instance per process has another one; release `folder`.

    `flags` are those of its kind: co-simulation or model exchange.
    """
    if flags is not None and flags.canBeInstantiatedOnlyOncePerProcess and folder.users > 1:
        folder.release()
        raise FmuError(
            f"{name} can be instantiated only once per process and is already instantiated. Use "
            f"isolate=True for the others."
        )


def _extract(archive: Archive, target: Path) -> None:
    """Unpack what a run needs: the description, the resources, the binaries of this platform."""
    left = largest_size()
    wanted = ("modeldescription.xml", "resources/", *_binary_folders())
    with _opened(archive.path) as file:
        members = _check_members(archive.path, file, [])
        chosen = {name: info for name, info in members.items() if name.lower().startswith(wanted)}
        size = sum(info.file_size for info in chosen.values())
        for name, info in chosen.items():
            path = target.joinpath(*name.split("/"))
            with _unpacking(archive.path, size):
                path.parent.mkdir(parents=True, exist_ok=True)
            with file.open(info) as source, _unpacking(archive.path, size), path.open("wb") as out:
                left -= _copy(source, out, min(left, info.file_size), archive.path)
            if name.startswith("binaries/"):
                path.chmod(0o700)
    with _unpacking(archive.path, size):
        (target / "resources").mkdir(exist_ok=True)


@contextlib.contextmanager
def _unpacking(path: Path, size: int | None = None) -> Iterator[None]:
    """Say of an error that it came from writing to the temporary folder, not from the FMU."""
    try:
        yield
    except _SourceError as error:
        raise error.cause from None
    except OSError as error:
        try:
            folder = tempfile.gettempdir()
        except OSError:  # there is none
            raise FmuError(f"cannot unpack `{path.name}`: {error}. {_OTHER_FOLDER}") from error
        needs = "" if size is None else f" It requires {size / 1e6:.3g} MB there"
        with contextlib.suppress(OSError):
            free = shutil.disk_usage(folder).free / 1e6
            needs += f"; {free:.3g} MB are free." if needs else f" {free:.3g} MB are free there."
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            raise FmuError(
                f"cannot unpack `{path.name}`: the temporary folder `{folder}` is full.{needs} "
                f"{_OTHER_FOLDER}"
            ) from error
        raise FmuError(
            f"cannot unpack `{path.name}` to the temporary folder `{folder}`: "
            f"{error.strerror or error}. {_OTHER_FOLDER}"
        ) from error


_OTHER_FOLDER = (
    "Remove files there, or set the environment variable TMPDIR (on Windows TEMP) to a folder "
    "with more space."
)


class _SourceError(Exception):
    """Carries an error of reading the archive through what catches errors of writing."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _binary_folders() -> list[str]:
    """Where binaries for this platform lie in FMI 2.0, and in FMI 3.0."""
    return [f"binaries/{name}/".lower() for name in platform_names()]


def _copy(source: IO[bytes], out: IO[bytes], limit: int, path: Path) -> int:
    copied = 0
    while True:
        try:
            chunk = source.read(1 << 20)
        except OSError as error:
            raise _SourceError(error) from error
        if not chunk:
            return copied
        copied += len(chunk)
        if copied > limit:
            raise FmuError(f"`{path}` unpacks to more bytes than declared and is rejected.")
        out.write(chunk)


def sweep() -> None:
    """Remove the folders of processes that were killed before they could do so themselves."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or not folder.is_dir() or not _is_ours(folder):
                continue
            if _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()


try:
    import fcntl
except ImportError:  # Windows: there an open file cannot be removed, which does as well

    def _lock(folder: Path) -> Any:
        return (folder / ".held").open("wb")

    def _is_abandoned(folder: Path) -> bool:
        try:
            (folder / ".held").unlink()
        except FileNotFoundError:
            return False  # just being made
        except OSError:
            return False
        return True
else:

    def _lock(folder: Path) -> Any:
        """Lock a file in the folder: the system unlocks it however the process ends."""
        mark = (folder / ".held").open("wb")
        fcntl.flock(mark, fcntl.LOCK_EX)
        return mark

    def _is_abandoned(folder: Path) -> bool:
        try:
            with (folder / ".held").open("rb") as mark:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            # Made by mkdtemp, not yet marked: abandoned only if it has been so for long.
            return folder.stat().st_mtime < _now() - 600
        except OSError:
            return False
        return True


def _now() -> float:
    import time

    return time.time()


def _let_go(mark: Any) -> None:
    with contextlib.suppress(OSError):
        mark.close()
