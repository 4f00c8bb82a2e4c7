"""Binaries for other platforms."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import fmpy
import pytest
from fmpy.validation import validate_fmu

from biella.errors import FmuError
from biella.fmu.exporter import _platforms as platforms
from biella.fmu.exporter._elf import minimum_glibc

from .conftest import lag


def test_platforms_that_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given, message in [
        (["linux32"], "unknown platform `linux32`. Did you mean `linux64`"),
        ([], "`platforms` is empty"),
    ]:
        with pytest.raises(FmuError, match=message):
            lag().export_fmu(tmp_path / "x.fmu", platforms=given)
    monkeypatch.setattr(platforms, "find_zig_compiler", lambda *_: None)
    with pytest.raises(FmuError, match=r"for win64, biella needs ziglang.*biella\[zig\]"):
        lag().export_fmu(tmp_path / "x.fmu", platforms=["linux64", "win64"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(platforms.this_platform() != "linux64", reason="not on Linux")
def test_without_ziglang_the_engine_that_runs_here_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platforms, "find_zig_compiler", lambda *_: None)
    a = lag().export_fmu(tmp_path / "a.fmu", platforms=["linux64"])
    b = lag().export_fmu(tmp_path / "b.fmu")
    assert a.read_bytes() == b.read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")
def test_other_platforms_are_compiled_once_and_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["linux64", "win64", "darwin64"]
    engines = []
    for n in range(2):
        # Zig keeps results of its own: another folder for them makes it link again.
        monkeypatch.setenv("ZIG_LOCAL_CACHE_DIR", str(tmp_path / f"zig{n}"))
        monkeypatch.setenv("BIELLA_CACHE", str(tmp_path / f"cache{n}"))
        assert platforms.list_uncompiled(names) == names
        engines.append(platforms.find_engines(names))
        assert platforms.list_uncompiled(names) == []
    assert engines[0] == engines[1]
    assert minimum_glibc(engines[0]["linux64"]) == "2.17"
    assert engines[0]["win64"][:2] == b"MZ"
    assert engines[0]["darwin64"][:4] == b"\xcf\xfa\xed\xfe"

    def refuse(*_: object, **__: object) -> Path:
        raise AssertionError("compiled again")

    monkeypatch.setattr(platforms, "build", refuse)
    path = lag().export_fmu(tmp_path / "x.fmu", platforms=names)
    assert fmpy.supported_platforms(str(path)) == ["c-code", "darwin64", "linux64", "win64"]
    assert validate_fmu(str(path)) == []
    result = fmpy.simulate_fmu(str(path), start_values={"u": 1.5}, stop_time=0.01)
    assert result["y"][-1] == 3.0
