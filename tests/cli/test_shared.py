"""Helpers of the commands: assignments, formats of files, what is printed for scripts."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from biella import BiellaError, BlockError
from biella.cli import _shared as shared
from biella.scheduler.results._result import Result


def result(rows=3):
    t = np.arange(rows) * 0.5
    return Result.from_arrays(
        t, {"a.y": t - 1.0, "b": np.column_stack([t, -t])}, units={"a.y": "m"}, info={"step": 0.5}
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pid.kp=3", ("pid.kp", 3)),
        (" pid.kp = -2.5e-3 ", ("pid.kp", -2.5e-3)),
        ("x=[1, 2]", ("x", [1, 2])),
        ("name=a=b", ("name", "a=b")),
        ("word=fast", ("word", "fast")),
    ],
)
def test_an_assignment_is_read(text, expected):
    assert shared.read_assignment(text, strings=True) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pid.kp", "--set requires PATH=VALUE"),
        ("=3", "--set requires PATH=VALUE"),
        (" =3", "--set requires PATH=VALUE"),
        ("a=fast", "--set a: `fast` is not a number or list"),
        ("a=1 +", "is not a number or list"),
        ("a=__import__('os')", "is not a number or list"),
        ("a={[]: 1}", "is not a number or list"),
        ("a=", "is not a number or list"),
    ],
)
def test_what_is_no_assignment_is_refused(text, message):
    with pytest.raises(BiellaError, match=message):
        shared.read_assignment(text)


def test_formats_and_folders_are_checked_before_a_run(tmp_path):
    assert shared.require_format("--out", None) == ""
    assert shared.require_format("--out", tmp_path / "run.CSV") == ".csv"
    with pytest.raises(
        BiellaError, match=r"--out requires a file .csv, .mf4 or .h5, got `run.txt`"
    ):
        shared.require_format("--out", Path("run.txt"))
    with pytest.raises(BiellaError, match="there is no folder"):
        shared.require_format("--out", tmp_path / "missing" / "run.csv")
    shared.require_picture(Path("-"))
    with pytest.raises(BiellaError):
        shared.require_picture(tmp_path / "picture.xyz")


def test_json_has_the_ends_of_every_signal(capsys):
    shared.print_result(result(), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["start"], told["end"], told["times"], told["step"]) == (0.0, 1.0, 3, 0.5)
    assert told["signals"]["a.y"] == {"unit": "m", "last": 0.0, "least": -1.0, "most": 0.0}
    assert told["signals"]["b"]["least"] == [0.0, -1.0]
    assert told["signals"]["b"]["last"] == [1.0, -1.0]


def test_a_result_without_rows_has_no_ends(capsys):
    shared.print_result(result(rows=0), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["times"] == 0 and "start" not in told
    assert told["signals"]["a.y"] == {"unit": "m"}


@pytest.mark.parametrize("suffix", [".csv", ".h5", ".HDF5"])
def test_the_extension_says_how_a_result_is_written(tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
    shared.write_result(result(), path)
    head = path.read_bytes()[:8]
    assert (head == b"\x89HDF\r\n\x1a\n") == (suffix != ".csv")


def options(**given):
    return argparse.Namespace(**{"out": None, "plot": None, "json": False, "record": None, **given})


def test_a_run_that_fails_leaves_what_it_recorded(tmp_path, capsys):
    def fail():
        error = BlockError("the block failed.")
        error.result = result()
        raise error

    with pytest.raises(BlockError):
        shared.report_run(options(out=tmp_path / "run.csv"), "loop", fail)
    assert len((tmp_path / "run.csv").read_text().splitlines()) > 3
    assert "data recorded until then are in" in capsys.readouterr().err


def test_with_json_only_json_is_printed(tmp_path, capsys):
    out = tmp_path / "run.csv"
    shared.report_run(options(out=out, json=True), "loop", result)
    printed = capsys.readouterr()
    assert json.loads(printed.out)["times"] == 3 and printed.err == f"biella: wrote {out}\n"
    shared.report_run(options(out=out), "loop", result)
    printed = capsys.readouterr()
    assert printed.err == "" and f"wrote {out}" in printed.out


def test_a_run_without_rows_is_an_error():
    with pytest.raises(BiellaError, match="no row was recorded"):
        shared.report_run(options(), "loop", lambda: result(rows=0))
