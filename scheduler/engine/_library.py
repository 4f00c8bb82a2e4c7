"""The C library: where it is, and whether it belongs to the generated module ``_contract``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from ctypes import CDLL, byref, c_char_p, c_double, c_int32, c_int64
from functools import lru_cache
from pathlib import Path

from ...errors import BiellaError
from .build import library_name

_REBUILD = (
    "Reinstall biella (pip install .), or in a checkout run: python scheduler/engine/build.py"
)

try:
    from ... import _contract as contract
except ImportError as error:  # `from` raises this for a missing submodule
    raise BiellaError(f"the engine has not been built: {error}. {_REBUILD}") from error

__all__ = [
    "contract",
    "engine_build",
    "kernel_crossings",
    "kernel_sizes",
    "library",
    "library_path",
]


def library_path() -> Path:
    """Return where the engine is; ``BIELLA_LIBRARY`` names another one, as with sanitizers."""
    named = os.environ.get("BIELLA_LIBRARY")
    return Path(named).absolute() if named else Path(__file__).parents[2] / library_name()


@lru_cache(maxsize=1)
def engine_build() -> str:
    """Return what identifies the build of the engine: the start of the SHA-256 of the library.

    Runs are repeated bit for bit by the same build only.
    """
    with library_path().open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


@lru_cache(maxsize=1)
def library() -> CDLL:
    """Load the engine, and declare its functions."""
    return load_library(library_path())


def load_library(path: Path) -> CDLL:
    """Load an engine that was compiled from the same headers as ``_contract``.

    Raises
    ------
    BiellaError
        It is missing, does not load, or was compiled from other headers.
    """
    try:
        loaded = CDLL(str(path))
    except OSError as error:
        raise BiellaError(
            f"the engine library cannot be loaded from {path}: {error}. {_REBUILD}"
        ) from error
    try:
        digest_of = loaded.bl_contract
    except AttributeError:
        digest = "unknown"
    else:
        digest_of.restype = c_char_p
        digest = digest_of().decode()
    if digest != contract.DIGEST:
        raise BiellaError(
            f"the engine library {path} and {contract.__file__} were built from different headers "
            f"(digests {digest} and {contract.DIGEST}). {_REBUILD}"
        )
    contract.declare(loaded)
    return loaded


def kernel_sizes(
    kernel: str,
    *,
    inputs: Sequence[int],
    outputs: Sequence[int],
    states: int,
    parameters: int,
    integers: Sequence[int],
) -> tuple[int, int] | None:
    """Return how many values of discrete state and of work space a block needs.

    Its kernel computes them; the engine allocates the work space when it loads a plan.

    Parameters
    ----------
    kernel
        The name of the kernel.
    inputs, outputs
        The width of each port.
    states, parameters
        How many continuous states and values of parameters the block has.
    integers
        The integers of the block.

    Returns
    -------
    tuple of int, or None
        Zeros for a kernel that needs neither; None if the block does not fit the kernel.
    """
    shape = _make_shape(inputs, outputs, states, parameters, integers)
    memory, scratch = c_int64(), c_int64()
    status = library().bl_kernel_sizes(kernel.encode(), byref(shape), byref(memory), byref(scratch))
    return None if status < 0 else (memory.value, scratch.value)


def kernel_crossings(
    kernel: str,
    *,
    inputs: Sequence[int],
    outputs: Sequence[int],
    states: int,
    parameters: int,
    integers: Sequence[int],
) -> tuple[int, bool]:
    """Return how many zero-crossing functions a block has, and whether they need no outputs.

    Parameters
    ----------
    kernel, inputs, outputs, states, parameters, integers
        As of `kernel_sizes`.
    """
    shape = _make_shape(inputs, outputs, states, parameters, integers)
    apart = c_int32()
    count = library().bl_kernel_crossings(kernel.encode(), byref(shape), byref(apart))
    return int(count), bool(apart.value)


def kernel_needs_rates(kernel: str) -> bool:
    """Return whether crossing functions of a kernel depend on rates of change of its inputs."""
    return bool(library().bl_kernel_needs_rates(kernel.encode()))


def _make_shape(
    inputs: Sequence[int],
    outputs: Sequence[int],
    states: int,
    parameters: int,
    integers: Sequence[int],
) -> contract.bl_shape:
    return contract.bl_shape(
        (c_int32 * len(inputs))(*inputs),
        (c_int32 * len(outputs))(*outputs),
        (c_int32 * len(integers))(*integers),
        (c_double * parameters)(),
        len(inputs),
        len(outputs),
        states,
        parameters,
        len(integers),
    )
