"""The C library: where it is, and the functions of it that Python calls."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import BiellaError
from .build import library_name

HostCall = ctypes.CFUNCTYPE(c_int, c_int32, c_int32, c_double, c_double)


class Layout(ctypes.Structure):
    """Mirrors bl_layout."""

    _fields_ = [(name, c_int64) for name in ("parameters", "signals", "states", "memory", "total")]


class Record(ctypes.Structure):
    """Mirrors bl_record."""

    _fields_ = [
        ("pick", POINTER(c_int64)),
        ("count", c_int64),
        ("every", c_int64),
        ("out", POINTER(c_double)),
        ("capacity", c_int64),
        ("rows", c_int64),
    ]


class Shape(ctypes.Structure):
    """Mirrors bl_shape."""

    _fields_ = [
        ("u_width", POINTER(c_int32)),
        ("y_width", POINTER(c_int32)),
        ("i", POINTER(c_int32)),
        ("p", POINTER(c_double)),
        ("u_count", c_int32),
        ("y_count", c_int32),
        ("x_count", c_int32),
        ("p_count", c_int32),
        ("i_count", c_int32),
    ]


def library_path() -> Path:
    """Return where the engine is; ``BIELLA_LIBRARY`` names another one, as with sanitizers."""
    named = os.environ.get("BIELLA_LIBRARY")
    return Path(named) if named else Path(__file__).parents[2] / library_name()


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """Load the engine."""
    path = library_path()
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as error:
        raise BiellaError(
            f"the engine library cannot be loaded from {path}: {error}. Install biella again "
            f"(pip install .), or in a checkout run: python scheduler/engine/build.py"
        ) from error
    engine = c_void_p
    signatures: dict[str, tuple[Any, Sequence[Any]]] = {
        "bl_hash": (ctypes.c_uint64, [c_char_p, c_size_t]),
        "bl_open": (c_int, [c_char_p, c_size_t, POINTER(c_void_p), c_char_p, c_size_t]),
        "bl_kernel_sizes": (c_int, [c_char_p, POINTER(Shape), POINTER(c_int64), POINTER(c_int64)]),
        "bl_close": (None, [engine]),
        "bl_set_host": (None, [engine, HostCall]),
        "bl_reset": (None, [engine]),
        "bl_init": (c_int, [engine]),
        "bl_run": (c_int, [engine, c_int64, POINTER(Record), POINTER(c_int64)]),
        "bl_run_to": (c_int, [engine, c_double]),
        "bl_call_block": (c_int, [engine, c_int32, c_int32, c_double, c_double]),
        "bl_inputs": (c_int, [engine, c_int32, POINTER(c_double)]),
        "bl_outputs": (c_int, [engine]),
        "bl_derivatives": (c_int, [engine, POINTER(c_double)]),
        "bl_record_now": (c_int, [engine, POINTER(Record)]),
        "bl_touch": (None, [engine]),
        "bl_get_layout": (None, [engine, POINTER(Layout)]),
        "bl_values": (POINTER(c_double), [engine]),
        "bl_slopes": (POINTER(c_double), [engine]),
        "bl_tick": (c_int64, [engine]),
        "bl_time": (c_double, [engine]),
        "bl_message": (c_char_p, [engine]),
        "bl_failed_block": (c_int32, [engine]),
        "bl_next_remark": (c_int32, [engine, c_int, c_int32]),
        "bl_set_start": (None, [engine, c_double]),
        "bl_keep_float_control": (None, [c_void_p]),
        "bl_restore_float_control": (None, [c_void_p]),
        "bl_check_loop": (
            c_int,
            [engine, c_int32, POINTER(c_double), POINTER(c_double), POINTER(c_double)],
        ),
        "bl_loop_size": (c_int32, [engine, c_int32]),
        "bl_loop_slots": (POINTER(c_int32), [engine, c_int32]),
        "bl_state_size": (c_size_t, [engine]),
        "bl_save": (None, [engine, c_void_p]),
        "bl_restore": (c_int, [engine, c_char_p, c_size_t]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = list(arguments)
    return lib


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
    shape = Shape(
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
    memory, scratch = c_int64(), c_int64()
    status = library().bl_kernel_sizes(kernel.encode(), byref(shape), byref(memory), byref(scratch))
    return None if status < 0 else (memory.value, scratch.value)
