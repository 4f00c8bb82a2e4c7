"""Values of strings and binaries; FMUs that write them are in tests/fmu/importer."""

import ctypes

import pytest

from biella import Diagram
from biella.blocks import Constant
from biella.scheduler.run._texts import read_binary, read_texts

pytestmark = pytest.mark.engine


def test_a_diagram_without_them_has_none():
    d = Diagram("numbers", step=0.01)
    d.add(Constant(1.0), name="one")
    with d.compile().instantiate() as instance:
        assert read_texts(instance) == {}
        assert read_binary(instance, 0.0) is None


def test_a_binary_is_read_with_its_zeros():
    d = Diagram("numbers", step=0.01)
    d.add(Constant(1.0), name="one")
    with d.compile().instantiate() as instance:
        data = (ctypes.c_uint8 * 4)(0, 1, 0, 255)
        writer = instance.library.bl_binary_open(instance.handle)
        number = instance.library.bl_binary_write(instance.handle, writer, data, 4)
        assert read_binary(instance, number) == b"\0\1\0\xff"
