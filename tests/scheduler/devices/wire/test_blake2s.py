"""Keyed BLAKE2s against hashlib, and the vectors that its authors have published."""

import ctypes
import hashlib
import random

import pytest

from biella.scheduler.engine._library import contract

from ..native import engine

pytestmark = pytest.mark.engine

# blake2-kat.json of the authors' reference package, keyed blake2s: `in`, `hash`; the key is 00..1f.
KEY = bytes(range(32))
PUBLISHED = {
    "00": "40d15fee7c328830166ac3f918650f807e7e01e177258cdc0a39b11f598066f1",
    "0001": "6bb71300644cd3991b26ccd4d274acd1adeab8b1d7914546c1198bbe9fc9d803",
}


def mac(key: bytes, message: bytes) -> bytes:
    absorbed, code = contract.bl_mac_key(), (ctypes.c_uint8 * 32)()
    engine().bl_mac_set_key(ctypes.byref(absorbed), (ctypes.c_uint8 * 32)(*key))
    block = (ctypes.c_uint8 * len(message))(*message)
    engine().bl_mac(ctypes.byref(absorbed), block, len(message), code)
    return bytes(code)


@pytest.mark.parametrize("message", PUBLISHED)
def test_published_vectors(message):
    assert mac(KEY, bytes.fromhex(message)).hex() == PUBLISHED[message]


def test_every_length_up_to_some_blocks_and_random_keys():
    draw = random.Random(1)
    for size in [*range(1, 260), 1023, 1024, 1025, 4096]:
        key, message = draw.randbytes(32), draw.randbytes(size)
        assert mac(key, message) == hashlib.blake2s(message, key=key).digest(), size
