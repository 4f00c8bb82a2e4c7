"""The engine for each platform that an FMU is to run on.

This machine's is the library that runs here. The others are cross-compiled through ziglang, once:
they are kept in a folder of the user's, under a hash of all that they are made from.
"""

from __future__ import annotations

import os
import platform as machine
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ...errors import FmuError, suggest
from ...scheduler.engine._library import library_path
from ...scheduler.engine.build import BuildError, Compiler, build, digest_inputs, find_zig_compiler

PACKAGE = Path(__file__).parents[2]
TARGETS = {
    "linux64": ("x86_64-linux-gnu.2.17", "linux"),
    "win64": ("x86_64-windows-gnu", "win32"),
    "darwin64": ("x86_64-macos", "darwin"),
}
"""FMI's names, with zig's target and the name in ``sys.platform``."""
SUFFIXES = {"linux64": ".so", "win64": ".dll", "darwin64": ".dylib"}


def this_platform() -> str:
    """Return FMI's name of this machine's platform."""
    names = {system: name for name, (_, system) in TARGETS.items()}
    return names.get(sys.platform, "linux64")


def platform_tuple(name: str) -> str:
    """Return FMI 3.0's name of a platform, with the processor that runs here if it is this one."""
    systems = {"linux64": "linux", "win64": "windows", "darwin64": "darwin"}
    processors = {"amd64": "x86_64", "arm64": "aarch64"}
    processor = machine.machine().lower() if name == this_platform() else "x86_64"
    return f"{processors.get(processor, processor)}-{systems[name]}"


def find_engines(platforms: Sequence[str] | None) -> dict[str, bytes]:
    """Return the engine for each platform; only for this one, as it runs here, if None are given.

    Platforms that are named are compiled by ziglang, for Linux so that glibc 2.17 is enough.
    Without ziglang the engine that runs here serves for this platform.

    Raises
    ------
    FmuError
        For an unknown platform, and where one cannot be compiled.
    """
    if platforms is None:
        return {this_platform(): library_path().read_bytes()}
    if not platforms:
        raise FmuError(f"`platforms` is empty. Platforms: {', '.join(TARGETS)}.")
    for name in platforms:
        if name not in TARGETS:
            raise FmuError(
                f"unknown platform `{name}`.{suggest(name, TARGETS)} "
                f"Platforms: {', '.join(TARGETS)}."
            )
    return {name: _engine(name) for name in platforms}


def cache_folder() -> Path:
    """Return the folder of the user's that keeps compiled engines."""
    named = os.environ.get("BIELLA_CACHE")
    if named:
        return Path(named)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "biella"


def list_uncompiled(platforms: Sequence[str]) -> list[str]:
    """Return those of the platforms that `find_engines` would have to compile for."""
    return [
        name
        for name in platforms
        if name in TARGETS
        and (compiler := find_zig_compiler(*TARGETS[name])) is not None
        and not _kept_library(name, compiler).is_file()
    ]


def _engine(name: str) -> bytes:
    compiler = find_zig_compiler(*TARGETS[name])
    if compiler is None:
        if name == this_platform() and machine.machine().lower() in ("x86_64", "amd64"):
            return library_path().read_bytes()
        raise FmuError(
            f"to compile the engine for {name}, biella needs ziglang, which is not installed: "
            f'pip install "biella[zig]".'
        )
    try:
        library = _kept_library(name, compiler)
        if not library.is_file():
            build(PACKAGE, library, compiler=compiler)
        return library.read_bytes()
    except BuildError as error:
        raise FmuError(f"the engine cannot be compiled for {name}: {error}") from error
    except OSError as error:
        raise FmuError(
            f"cannot store the engine for {name} in `{cache_folder()}`: {error.strerror}. Set "
            f"BIELLA_CACHE to a writable folder."
        ) from error


def _kept_library(name: str, compiler: Compiler) -> Path:
    options = [_zig_version(), os.environ.get("BIELLA_CFLAGS", "")]
    made_from = digest_inputs(PACKAGE, compiler, options)
    return cache_folder() / "engines" / made_from[:32] / f"biella{SUFFIXES[name]}"


def _zig_version() -> str:
    try:
        return version("ziglang")
    except PackageNotFoundError:
        return "unknown"
