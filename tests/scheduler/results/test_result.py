"""Results: names, files, plots, comparison."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from biella.errors import BiellaError
from biella.scheduler.results.result import Result
from biella.scheduler.results.signals import ResultError, Signal, SignalTable, UnknownSignalError

T = np.arange(101) * 0.01


@pytest.fixture
def result() -> Result:
    return Result.from_arrays(
        T,
        {
            Signal("ref.y", unit="rad/s"): np.where(T < 0.5, 0.0, 30.0),
            Signal("encoder.speed", unit="rad·s^-1", sampled=True): np.round(30 * T),
            Signal("pid.u", unit="N.m"): np.sin(7 * T),
            Signal("pid.saturated", kind="boolean"): np.sin(7 * T) > 0.5,
            Signal("sub.plant.force", 3, "N"): np.outer(T, [1.0, 2.0, 3.0]),
        },
        aliases={"ref": "ref.y", "lost": "lost.y"},
        info={"diagram": "loop", "step": 0.01, "ticks": 100, "stopped": None},
    )


class TestNames:
    def test_shapes(self, result: Result) -> None:
        assert result["pid.u"].shape == (101,)
        assert result["sub.plant.force"].shape == (101, 3)
        assert result.t.shape == (101,)

    def test_is_a_mapping_in_recorded_order(self, result: Result) -> None:
        assert list(result) == result.paths
        assert len(result) == 5
        assert dict(result.items()).keys() == set(result.paths)
        assert result.get("nothing") is None
        assert result == result and len({result}) == 1

    def test_alias_and_element(self, result: Result) -> None:
        assert np.array_equal(result["ref"], result["ref.y"])
        assert np.array_equal(result["sub.plant.force[2]"], 3 * T)
        assert np.array_equal(result["pid.u[0]"], result["pid.u"])
        assert "ref" in result and "sub.plant.force[1]" in result
        assert "lost" not in result and "sub.plant.force[3]" not in result

    def test_a_path_wins_over_an_alias(self) -> None:
        table = SignalTable([Signal("a"), Signal("b.y")], {"a": "b.y"})
        assert table.locate("a")[0].path == "a"

    def test_units(self, result: Result) -> None:
        assert result.units["pid.u"] == "N.m"
        assert result.units["pid.saturated"] is None

    def test_arrays_are_read_only(self, result: Result) -> None:
        with pytest.raises(ValueError, match="read-only"):
            result["pid.u"][0] = 1.0

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("encoder.sped", r"`encoder.sped` was not recorded. Did you mean `encoder.speed`\?"),
            ("pid", "Did you mean `pid.u` or `pid.saturated`"),
            ("force", "Did you mean `sub.plant.force`"),
            ("zzz", r"not recorded. Recorded: ref.y, encoder.speed, pid.u, .*force\."),
            ("sub.plant.force[3]", r"has 3 elements, \[0\] to \[2\]"),
        ],
    )
    def test_unknown_name_teaches(self, result: Result, name: str, message: str) -> None:
        with pytest.raises(UnknownSignalError, match=message) as caught:
            result[name]
        assert isinstance(caught.value, KeyError)
        assert isinstance(caught.value, BiellaError)

    def test_many_names_are_cut(self) -> None:
        many = Result.from_arrays([0.0], {f"s{i}": [0.0] for i in range(100)})
        with pytest.raises(UnknownSignalError, match="s29, … and 70 more"):
            many["zzz"]

    def test_bad_tables(self) -> None:
        with pytest.raises(ResultError, match="`a` is recorded twice"):
            SignalTable([Signal("a"), Signal("a")])
        with pytest.raises(ResultError, match=r"`a` has shape \(2,\); with 3 times"):
            Result.from_arrays([0, 1, 2], {"a": [1, 2]})
        with pytest.raises(ResultError, match="kind `text`"):
            Signal("a", kind="text")  # type: ignore[arg-type]
        with pytest.raises(ResultError, match="width 0"):
            Signal("a", 0)

    def test_repr(self, result: Result) -> None:
        text = repr(result)
        assert text.startswith("Result of 'loop': 5 signals, 101 times, t = 0 to 1 s\n")
        assert "  sub.plant.force  N         real     3" in text
        assert len(text.splitlines()) == 7
        assert "<td>pid.u</td><td>N.m</td>" in result._repr_html_()
        result.info["stopped"] = "<Ctrl-C>"
        assert "stopped: <Ctrl-C>" in repr(result)
        assert "&lt;Ctrl-C&gt;" in result._repr_html_()

    def test_empty(self, tmp_path: Path) -> None:
        signals: dict[str | Signal, Any] = {"a": [], Signal("v", 2): np.empty((0, 2))}
        empty = Result.from_arrays([], signals)
        assert empty["v"].shape == (0, 2)
        assert "0 times" in repr(empty)
        empty.to_csv(tmp_path / "e.csv")
        empty.to_hdf5(tmp_path / "e.h5")
        assert Result.from_hdf5(tmp_path / "e.h5")["v"].shape == (0, 2)
        assert empty.plot() is not None
        assert repr(Result.from_arrays([0.0], {})) == "Result: 0 signals, 1 times, t = 0 to 0 s"


class TestCsv:
    def test_header_and_values(self, result: Result, tmp_path: Path) -> None:
        result.to_csv(tmp_path / "r.csv")
        with (tmp_path / "r.csv").open(encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        assert header[:4] == [
            "time [s]",
            "ref.y [rad/s]",
            "encoder.speed [rad·s^-1]",
            "pid.u [N.m]",
        ]
        assert header[5:] == [f"sub.plant.force[{i}] [N]" for i in range(3)]
        numbers = np.array(rows, dtype=float)
        assert np.array_equal(numbers[:, 0], T)
        assert np.array_equal(numbers[:, 3], result["pid.u"])
        assert np.array_equal(numbers[:, 5:], result["sub.plant.force"])
        assert rows[50][4] in ("0", "1")

    def test_a_comma_in_a_name_is_quoted(self, tmp_path: Path) -> None:
        Result.from_arrays([0.0], {"f(a,b)": [1.0]}).to_csv(tmp_path / "r.csv")
        assert (tmp_path / "r.csv").read_bytes() == b'time [s],"f(a,b)"\n0.0,1.0\n'

    def test_missing_folder(self, result: Result, tmp_path: Path) -> None:
        with pytest.raises(ResultError, match="there is no folder"):
            result.to_csv(tmp_path / "no" / "r.csv")

    @pytest.mark.parametrize("method", ["to_csv", "to_hdf5"])
    def test_full_disk_changes_nothing(self, tmp_path: Path, method: str) -> None:
        target = tmp_path / "r.out"
        getattr(Result.from_arrays([0.0], {"s": [1.0]}), method)(target)
        earlier = target.read_bytes()
        script = f"""
import resource, numpy as np
from biella.scheduler.results.result import Result
from biella.scheduler.results.signals import ResultError
r = Result.from_arrays(np.arange(200_000.0), {{f"s{{i}}": np.arange(200_000.0) for i in range(5)}})
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    r.{method}({str(target)!r})
except ResultError as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert "larger than the system allows. Nothing was changed there." in done.stdout
        assert target.read_bytes() == earlier
        assert list(tmp_path.iterdir()) == [target]


class TestHdf5:
    def test_round_trip_is_lossless(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        again = Result.from_hdf5(tmp_path / "r.h5")
        assert list(again.signals.values()) == list(result.signals.values())
        assert again.signals.aliases == {"ref": "ref.y"}
        assert again.info == result.info
        assert np.array_equal(again.t, T)
        for path in result:
            assert np.array_equal(again[path], result[path])

    @settings(max_examples=50)
    @given(
        arrays(np.float64, st.tuples(st.integers(0, 5), st.integers(1, 3))),
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
    )
    @example(np.zeros((2, 1)), ".")
    def test_any_numbers_and_names(
        self, tmp_path_factory: pytest.TempPathFactory, values: np.ndarray, name: str
    ) -> None:
        file = tmp_path_factory.mktemp("any") / "r.h5"
        before = Result.from_arrays(np.arange(len(values)), {name: values}, units={name: "µm"})
        before.to_hdf5(file)
        after = Result.from_hdf5(file)
        assert after.paths == [name]
        assert after[name].tobytes() == np.ascontiguousarray(before[name]).tobytes()
        assert after.units == {name: "µm"}

    def test_plain_tools_can_read_it(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        with h5py.File(tmp_path / "r.h5", "r") as file:
            assert file["signals/pid.u"].attrs["unit"] == "N.m"
            assert np.array_equal(file["time"], T)

    def test_only_the_asked_signal_is_read(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        lazy = Result.from_hdf5(tmp_path / "r.h5")
        with h5py.File(tmp_path / "r.h5", "r+") as file:
            del file["signals/ref.y"]
        assert np.array_equal(lazy["pid.u"], result["pid.u"])
        assert lazy.read("pid.u", slice(10, 12)).tolist() == result["pid.u"][10:12].tolist()

    def test_a_held_signal_is_not_read_twice(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        lazy = Result.from_hdf5(tmp_path / "r.h5")
        assert lazy["pid.u"] is not None
        held = lazy["pid.u"]
        assert lazy["pid.u"] is held

    def test_a_replaced_file_is_noticed(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        lazy = Result.from_hdf5(tmp_path / "r.h5")
        lazy.to_hdf5(tmp_path / "r.h5")
        assert np.array_equal(lazy["pid.u"], result["pid.u"])
        result.to_hdf5(tmp_path / "r.h5")
        with pytest.raises(ResultError, match="replaced by another recording"):
            lazy["ref"]

    def test_foreign_files(self, tmp_path: Path) -> None:
        with pytest.raises(ResultError, match="There is no file"):
            Result.from_hdf5(tmp_path / "none.h5")
        (tmp_path / "text.h5").write_text("hello")
        with pytest.raises(ResultError, match="not a readable HDF5 file"):
            Result.from_hdf5(tmp_path / "text.h5")
        with h5py.File(tmp_path / "other.h5", "w", libver=("v110", "v110")) as file:
            file["x"] = 1
        with pytest.raises(ResultError, match="but not a biella result"):
            Result.from_hdf5(tmp_path / "other.h5")


class TestPandas:
    def test_frame(self, result: Result) -> None:
        pytest.importorskip("pandas")
        frame = result.to_pandas()
        assert list(frame.columns[-3:]) == [f"sub.plant.force[{i}]" for i in range(3)]
        assert frame.index.name == "time"
        assert np.array_equal(frame["pid.u"], result["pid.u"])
        assert frame.attrs["units"]["pid.u"] == "N.m"

    def test_without_pandas(self, result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ResultError, match=r"pip install 'biella\[pandas\]'"):
            result.to_pandas()


class TestCompare:
    def test_equal(self, result: Result, tmp_path: Path) -> None:
        result.to_hdf5(tmp_path / "r.h5")
        report = result.compare(Result.from_hdf5(tmp_path / "r.h5"), rtol=0.0, atol=0.0)
        assert report
        assert "agree within rtol=0, atol=0" in str(report)
        assert report.notes == []

    def test_difference_is_measured(self) -> None:
        a = Result.from_arrays([0, 1, 2, 3], {"x": [1.0, 2.0, 4.0, 8.0]})
        b = Result.from_arrays([0, 1, 2, 3], {"x": [1.0, 2.0, 5.0, 10.0]})
        report = a.compare(b, rtol=0.0, atol=0.5)
        assert not report
        assert report["x"].max_abs == 2.0
        assert report["x"].max_rel == pytest.approx(0.2)
        assert report["x"].first_time == 2.0
        assert "t = 2 s" in str(report)
        assert a.compare(b, atol=2.0)
        assert a.compare(b, rtol=0.2, atol=0.0)
        assert not a.compare(b, rtol=0.19, atol=0.0)

    def test_vectors(self) -> None:
        a = Result.from_arrays([0, 1], {"v": [[1.0, 2.0], [3.0, 4.0]]})
        b = Result.from_arrays([0, 1], {"v": [[1.0, 2.0], [3.0, 4.5]]})
        assert a.compare(b)["v"].first_time == 1.0
        assert a.compare(b)["v"].max_abs == 0.5

    @pytest.mark.parametrize(
        ("x", "y", "equal"),
        [
            (np.nan, np.nan, True),
            (np.inf, np.inf, True),
            (np.inf, -np.inf, False),
            (np.nan, 1.0, False),
            (1.0, np.inf, False),
            (0.0, -0.0, True),
        ],
    )
    def test_special_numbers(self, x: float, y: float, equal: bool) -> None:
        a, b = (Result.from_arrays([0.0], {"x": [value]}) for value in (x, y))
        assert bool(a.compare(b)) is equal

    def test_missing_signals_are_a_difference_unless_named(self, result: Result) -> None:
        other = Result.from_arrays(T, {"pid.u": result["pid.u"], "new": T})
        report = result.compare(other)
        assert not report
        assert report.only_right == ("new",)
        assert "Only in the first: ref.y, encoder.speed" in str(report)
        assert result.compare(other, signals=["pid.u"])
        with pytest.raises(UnknownSignalError, match="ref"):
            result.compare(other, signals=["ref"])

    def test_other_times_are_reported(self) -> None:
        fine = np.arange(1001) * 1e-3
        coarse = np.nextafter(fine[::10], 2.0)  # another bit, as another step size gives
        a = Result.from_arrays(fine, {"x": fine})
        b = Result.from_arrays(coarse, {"x": coarse})
        report = a.compare(b)
        assert report and report.times == (101, 1001, 101)
        assert "Compared at the 101 common times of 1001 and 101." in str(report)
        assert b.compare(a) and b.compare(a).times == (101, 101, 1001)

    def test_no_common_time_is_not_equal(self) -> None:
        a = Result.from_arrays([0.0, 1.0], {"x": [0.0, 0.0]})
        b = Result.from_arrays([0.5, 1.5], {"x": [0.0, 0.0]})
        assert not a.compare(b)
        assert not a.compare(Result.from_arrays([], {"x": []}))

    def test_units_and_widths(self) -> None:
        def make(unit: str, values: object = (1.0,)) -> Result:
            return Result.from_arrays([0.0], {"x": np.array(values)}, units={"x": unit})

        assert make("N.m").compare(make("J"))
        assert "unit rpm against rad/s" in str(make("rpm").compare(make("rad/s")))
        assert not make("rpm").compare(make("rad/s"))
        assert "width 1 against 2" in str(make("N").compare(make("N", [[1.0, 1.0]])))


class TestPlot:
    def test_grouped_by_unit_however_spelled(self, result: Result) -> None:
        figure = result.plot("ref", "encoder.speed", "pid.u", "pid.saturated")
        assert [len(axes.lines) for axes in figure.axes] == [2, 1, 1]
        assert [axes.get_ylabel() for axes in figure.axes] == ["[rad/s]", "[N·m]", ""]
        assert figure.axes[0].get_title(loc="left") == "loop"
        assert figure.axes[-1].get_xlabel() == "time [s]"

    def test_lists_make_axes(self, result: Result) -> None:
        figure = result.plot(["ref", "pid.u"], "sub.plant.force", title="")
        assert [len(axes.lines) for axes in figure.axes] == [2, 3]
        legend = figure.axes[1].get_legend()
        assert legend is not None
        names = [text.get_text() for text in legend.get_texts()]
        assert names == [f"sub.plant.force[{i}]" for i in range(3)]

    def test_everything_by_default(self, result: Result) -> None:
        assert sum(len(axes.lines) for axes in result.plot().axes) == 7

    def test_held_signals_are_steps(self, result: Result) -> None:
        lines = [axes.lines[0] for axes in result.plot("encoder.speed", "pid.u").axes]
        assert [line.get_drawstyle() for line in lines] == ["steps-post", "default"]

    def test_legend_is_off_the_data(self, result: Result) -> None:
        figure = result.plot("ref", "sub.plant.force")
        figure.draw_without_rendering()
        for axes in figure.axes:
            legend = axes.get_legend()
            assert legend is not None
            box = legend.get_window_extent()
            assert box.x0 >= axes.get_window_extent().x1
            assert box.x1 <= figure.bbox.x1

    def test_part_of_the_time(self, result: Result) -> None:
        line = result.plot("pid.u", start=0.2, stop=0.4).axes[0].lines[0]
        drawn = np.asarray(line.get_xdata())
        assert drawn[0] == pytest.approx(0.2)
        assert len(drawn) == 21
        with pytest.raises(ResultError, match="the recording covers 0 to 1 s"):
            result.plot("pid.u", start=5.0)

    def test_extremes_survive_thinning(self) -> None:
        t = np.arange(300_001) * 1e-3
        y = np.sin(t)
        y[123_457], y[200_003] = 50.0, -50.0
        line = Result.from_arrays(t, {"y": y}).plot().axes[0].lines[0]
        drawn = np.asarray(line.get_ydata())
        assert len(drawn) < 25_000
        assert (drawn.min(), drawn.max()) == (-50.0, 50.0)
        assert np.asarray(line.get_xdata())[-1] == t[-1]

    @pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
    def test_saves_by_extension(self, result: Result, tmp_path: Path, suffix: str) -> None:
        result.plot("ref", path=tmp_path / f"p.{suffix}")
        magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
        assert (tmp_path / f"p.{suffix}").read_bytes().startswith(magic)

    def test_unknown_extension(self, result: Result, tmp_path: Path) -> None:
        with pytest.raises(ResultError, match=r"one of the extensions .*pdf.*png"):
            result.plot("ref", path=tmp_path / "p.doc")
        assert list(tmp_path.iterdir()) == []

    def test_shows_in_a_notebook(self, result: Result) -> None:
        assert result.plot("ref")._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]

    def test_unknown_name(self, result: Result) -> None:
        with pytest.raises(UnknownSignalError, match="Did you mean"):
            result.plot("encoder.sped")
        with pytest.raises(ResultError, match="nothing to plot"):
            Result.from_arrays([0.0], {}).plot()


def test_heavy_libraries_wait_until_needed() -> None:
    script = (
        "import sys, biella.scheduler.results.recorder, biella.scheduler.run.progress; "
        "print([m for m in ('matplotlib', 'h5py', 'rich', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_no_display_and_no_pyplot(tmp_path: Path) -> None:
    script = (
        "import sys; from biella.scheduler.results.result import Result; "
        f"Result.from_arrays([0, 1], {{'x': [0, 1]}}).plot(path={str(tmp_path / 'p.png')!r}); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
