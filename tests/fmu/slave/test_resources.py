"""Where an FMU looks for its plan: every form of a location that tools have been seen to pass."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from biella.scheduler.engine import build

pytestmark = pytest.mark.engine

PACKAGE = Path(build.__file__).parents[2]
HOOK = """
#include "fmu/exporter/interface/resources.c"
__attribute__((visibility("default"))) int decode(const char *location, char *path, size_t size) {
    return decode_location(location, path, size);
}
"""


@pytest.fixture(scope="module")
def decode(tmp_path_factory, c_compiler):
    """The static function itself, compiled with a hook around it."""
    folder = tmp_path_factory.mktemp("resources")
    source, library = folder / "hook.c", folder / "hook.so"
    source.write_text(HOOK)
    flags = [*c_compiler.compile_flags, f"-I{PACKAGE}", *c_compiler.link_flags]
    subprocess.run(
        [*c_compiler.command, str(source), "-o", str(library), *flags], check=True, timeout=300
    )
    function = ctypes.CDLL(str(library)).decode

    def call(location: str, room: int = 4096) -> str | None:
        path = ctypes.create_string_buffer(room)
        if not function(location.encode(), path, ctypes.c_size_t(room)):
            return None
        return path.value.decode()

    return call


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("file:///tmp/x/resources", "/tmp/x/resources"),
        ("file:/tmp/x/resources", "/tmp/x/resources"),
        ("file://localhost/tmp/x", "/tmp/x"),
        ("FILE:///tmp/x", "/tmp/x"),
        ("File:/tmp/x", "/tmp/x"),
        ("file:////tmp/x", "//tmp/x"),
        ("file://///tmp/x", "//tmp/x"),
        ("file:tmp/x", "tmp/x"),
        ("/tmp/x", "/tmp/x"),
        ("tmp/x", "tmp/x"),
        ("./x", "./x"),
        ("file:///tmp/x/", "/tmp/x"),
        ("file:///tmp/x///", "/tmp/x"),
        ("/tmp/x/", "/tmp/x"),
        ("file:///", "/"),
        ("/", "/"),
        ("file:///a%20b/%C3%BC%25", "/a b/ü%"),
        ("file:///a b/ü", "/a b/ü"),
        ("/a%20b", "/a%20b"),
        ("file:///100%", "/100%"),
        ("file:///100%2", "/100%2"),
        ("file:///100%zz", "/100%zz"),
        ("file:///C:/Users/x/resources", "C:/Users/x/resources"),
        ("file:/C:/x", "C:/x"),
        ("file:C:/x", "C:/x"),
        ("file://C:/x", "C:/x"),
        ("file:///C%3A/x", "C:/x"),
        ("file:///c|/x", "c:/x"),
        ("file://localhost/C:/x", "C:/x"),
        ("file:///C:\\Users\\x", "C:\\Users\\x"),
        ("C:\\Users\\x\\", "C:\\Users\\x"),
        ("C:/Users/x/", "C:/Users/x"),
        ("file:///C:/", "C:"),
        ("file://server/share/x", "//server/share/x"),
        ("file:////server/share/x", "//server/share/x"),
        ("\\\\server\\share", "\\\\server\\share"),
        ("filex:/tmp", "filex:/tmp"),
    ],
)
def test_locations(decode, location, path):
    assert decode(location) == path


@pytest.mark.parametrize("location", ["file:", "file:///%00", "file:///a%00b"])
def test_what_names_no_place(decode, location):
    assert decode(location) is None


def test_a_path_that_does_not_fit(decode):
    assert decode("/" + "a" * 8, 10) == "/" + "a" * 8
    assert decode("/" + "a" * 9, 10) is None
