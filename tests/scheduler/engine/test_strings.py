"""Strings and binaries between blocks outside the engine: what is kept, and what is refused."""

from __future__ import annotations

from ctypes import POINTER, byref, c_int64, c_uint8, cast

import pytest

from biella import Diagram
from biella.blocks import Constant
from biella.scheduler.engine._library import contract

pytestmark = pytest.mark.engine


@pytest.fixture
def instance():
    d = Diagram("strings")
    d.add(Constant(1.0), "one")
    with d.compile().instantiate() as instance:
        yield instance


def write(instance, writer, data, size=None):
    pointer = None if data is None else cast(data, POINTER(c_uint8))
    size = len(data) if size is None else size
    return instance.library.bl_binary_write(instance.handle, writer, pointer, size)


def read(instance, number):
    size = c_int64(-1)
    pointer = instance.library.bl_binary_read(instance.handle, number, byref(size))
    return bytes(pointer[: size.value]) if pointer else None


def test_binaries_are_read_as_they_were_written(instance):
    writer = instance.library.bl_binary_open(instance.handle)
    values = [b"", b"\0", b"abc", bytes(range(256)) * 16]
    numbers = [write(instance, writer, value) for value in values]
    assert [read(instance, number) for number in numbers] == values
    assert len(set(numbers)) == len(values) and min(numbers) > 0.0
    assert instance.library.bl_string_read(instance.handle, numbers[-1]) is None


def test_bytes_that_are_not_there_are_refused(instance):
    """Without bytes only nothing can be written."""
    writer = instance.library.bl_binary_open(instance.handle)
    kept = write(instance, writer, b"abc")
    assert [write(instance, writer, None, size) for size in (1, 2, -1)] == [0.0] * 3
    assert write(instance, writer, b"abc", contract.BL_BINARY_SIZE + 1) == 0.0
    assert read(instance, kept) == b"abc"
    assert read(instance, write(instance, writer, None, 0)) == b""
