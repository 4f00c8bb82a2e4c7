"""Types of variables that an export to FMI 3.0 chooses: what is written, read, and refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmi3_calls import DISCARD, ERROR, OK, TYPES, Instance3, Unpacked3
from fmpy.validation import validate_fmu

from biella import BiellaError, Diagram, Fmu, Result, simulate
from biella.blocks import (
    Compare,
    Constant,
    Convert,
    Counter,
    Gain,
    Integrator,
    RateLimiter,
    Sine,
    StateSpace,
    UnitDelay,
)
from biella.blocks.multibody.mechanisms import slider_crank
from biella.cli import main

pytestmark = pytest.mark.engine

FLOATS = ("Float64", "Float32")
BITS = (8, 16, 32, 64)
INTEGERS = tuple(f"{sign}Int{bits}" for bits in BITS for sign in ("", "U"))


def range_of(type_: str) -> tuple[int, int]:
    """Smallest value and largest that are both in the type and exact as a double."""
    bits = int(type_.partition("Int")[2])
    low, high = (0, 2**bits - 1) if type_[0] == "U" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return max(low, -(2**53)), min(high, 2**53)


def make_diagram(integer: bool, width: int | None) -> Diagram:
    """A port in, the same out, and the same as a local variable; real ones with a gain."""
    d = Diagram("typed", step=1e-3)
    wide: dict[str, Any] = {} if width is None else {"width": width}
    u = d.input("u", kind="integer" if integer else "real", **wide)
    gain = [1.0] * (width or 1) if width else 1.0
    d.add(Convert("integer") if integer else Gain(gain), "k", u=u)
    d.output("y", d["k"])
    d.add(UnitDelay(), "z", u=d["k"] if not integer else d.add(Convert("real"), "r", u=d["k"]))
    return d


def names_of(integer: bool) -> list[str]:
    return ["u", "y", "k.y"] if integer else ["u", "y", "k.y", "k.k"]


@pytest.mark.parametrize("width", [None, 3])
@pytest.mark.parametrize("type_", [*FLOATS, *INTEGERS])
def test_every_type_goes_round(tmp_path: Path, type_: str, width: int | None) -> None:
    """The description, the calls through ctypes, the own importer and FMPy agree on the edges."""
    integer = type_ in INTEGERS
    names = names_of(integer)
    d = make_diagram(integer, width)
    path = d.export_fmu(
        tmp_path / "x.fmu", version="3.0", types=dict.fromkeys(names, type_), local=["k.y"],
        sources=False,
    )  # fmt: skip
    assert validate_fmu(str(path)) == []
    fmu = Unpacked3(path, tmp_path / "x")
    assert {fmu.variables[name].tag for name in names} == {type_}
    low, high = range_of(type_) if integer else (-3.25, 1.5)
    given = [low, high, 1][: width or 1]
    one = Instance3(fmu)
    assert one.set("u", given) == OK
    if not integer:
        assert one.set("k.k", [0.5] * (width or 1)) == OK
    assert one.enter_initialization() == OK
    expected = given if integer else [0.5 * value for value in given]
    assert one.get("u") == given
    assert one.get("y") == one.get("k.y") == expected
    result = run_block(path, given, integer)
    np.testing.assert_array_equal(np.atleast_1d(result["f.y"][-1]), given)
    if width is None:
        table = fmpy.simulate_fmu(str(path), start_values={"u": given[0]}, stop_time=0.002)
        assert table["y"][-1] == given[0]


def run_block(path: Path, given: list[Any], integer: bool) -> Result:
    d = Diagram("importer", step=1e-3)
    source: Any = d.add(Constant(given if len(given) > 1 else given[0]), "c")
    if integer:
        source = d.add(Convert("integer"), "n", u=source)
    d.add(Fmu(path), "f", u=source)
    return simulate(d, 0.002)


@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("width", [None, 2])
def test_a_value_that_does_not_fit_is_an_error(
    tmp_path: Path, type_: str, width: int | None
) -> None:
    d = make_diagram(True, width)
    d.add(Gain(1.0), "grow", u=d.input("x"))
    d.output("big", d.add(Convert("integer"), "whole", u=d["grow"]))
    types = None if type_ == "Int64" else {"big": type_}
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0", types=types, sources=False)
    one = Instance3(Unpacked3(path, tmp_path / "x")).start()
    bits = int(type_.partition("Int")[2])
    low, end = (0.0, 2.0**bits) if type_[0] == "U" else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
    fine = [low, 0.0, np.nextafter(end, 0.0) if bits == 64 else end - 1.0]
    wrong = [end, end + 1.0, 2 * end, 1e300, -1e300]
    wrong += [-1.0] if low == 0 else [np.nextafter(low, -np.inf) if bits == 64 else low - 1.0]
    for value in fine:
        assert one.set("x", value) == OK
        assert one.get("big") == [int(value)]
    for value in wrong:
        assert one.set("x", value) == OK
        status, _ = one.read(one.type_of("big"), [one.fmu.refer("big")], 1)
        assert status == ERROR, value
        said = one.messages[-1]
        assert re.search(rf"variable 'big' is .*, which does not fit its type {type_}$", said)
        assert float(said.split(" is ")[1].split(",")[0]) == value
    assert one.set("x", 1.0) == OK  # the instance is none the worse
    assert one.get("big") == [1]


def test_the_element_of_an_array_is_named(tmp_path: Path) -> None:
    d = make_diagram(True, 3)
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0", types={"y": "UInt8"}, sources=False)
    one = Instance3(Unpacked3(path, tmp_path / "x")).start(u=[255, 0, 256])
    assert one.read("UInt8", [one.fmu.refer("y")], 3)[0] == ERROR
    assert one.messages[-1] == (
        "variable 'y', element 2, is 256, which does not fit its type UInt8"
    )
    with pytest.raises(BiellaError, match=r"'y', element 2, is 256, .* UInt8"):
        run_block(path, [255, 0, 256], True)
    assert one.write("Int64", [one.fmu.refer("u")], [2**53 + 1, 0, 0]) == DISCARD


def test_a_uint64_beyond_what_a_double_has_is_discarded(tmp_path: Path) -> None:
    d = make_diagram(True, None)
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0", types={"u": "UInt64"}, sources=False)
    one = Instance3(Unpacked3(path, tmp_path / "x")).start()
    for value in (2**53 + 1, 2**63, 2**64 - 1):
        assert one.set("u", value) == DISCARD
        assert one.messages[-1].startswith(f"the integer {value} is not exact")
    assert one.set("u", 2**53) == OK
    assert one.get("u", "y") == [2**53, 2**53]


def test_float32_rounds_to_nearest_and_does_not_overflow(tmp_path: Path) -> None:
    """Compared with numpy's conversion."""
    d = Diagram("single", step=1e-3)
    d.output("y", d.add(Gain(1.0), "k", u=d.input("u")))
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0", types={"y": "Float32"}, sources=False)
    one = Instance3(Unpacked3(path, tmp_path / "x")).start()
    largest = float(np.finfo(np.float32).max)
    halfway = float.fromhex("0x1.ffffffp127")
    rng = np.random.default_rng(1)
    tried = [0.1, 1 + 2**-24, 1 + 2**-23 + 2**-24, 1e-40, 1e-46, -0.0, largest, -largest]
    tried += [np.nextafter(largest, np.inf), np.nextafter(halfway, 0), -np.nextafter(halfway, 0)]
    tried += (rng.standard_normal(50) * 10.0 ** rng.integers(-44, 38, 50)).tolist()
    for value in tried:
        assert one.set("u", value) == OK
        with np.errstate(over="ignore", under="ignore"):
            assert one.get("y") == [float(np.float32(value))]
    for value in (halfway, -halfway, 1e39, -1e300):
        assert one.set("u", value) == OK
        assert one.read("Float32", [one.fmu.refer("y")], 1)[0] == ERROR
        assert one.messages[-1].startswith("variable 'y' is ")
        assert one.messages[-1].endswith("does not fit its type Float32")


def test_float32_passes_what_is_infinite_itself(tmp_path: Path) -> None:
    """A limit that is switched off starts infinite."""
    d = Diagram("infinite", step=1e-3)
    d.output("y", d.add(RateLimiter(2.0, np.inf), "rate", u=d.input("u")))
    types = {"rate.falling": "Float32", "u": "Float32"}
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0", types=types, sources=False)
    one = Instance3(Unpacked3(path, tmp_path / "x"))
    assert one.fmu.variables["rate.falling"].get("start") == "INF"
    assert one.get("rate.falling") == [np.inf]
    assert one.set("rate.falling", float("inf")) == OK
    assert one.set("u", float("inf")) == DISCARD


@pytest.mark.parametrize("verb", ["Get", "Set"])
@pytest.mark.parametrize("type_", TYPES)
def test_each_function_refuses_variables_of_other_types(
    all_types: Unpacked3, type_: str, verb: str
) -> None:
    one = Instance3(all_types)
    for name in [*FLOATS, *INTEGERS, "Boolean"]:
        reference = [all_types.refer(f"in{name}")]
        if verb == "Get":
            status = one.read(type_, reference, 1)[0]
        else:
            status = one.write(type_, reference, [b"1" if type_ == "String" else 1])
        assert (status == OK) == (name == type_), name
        if status == ERROR and type_ != "String":
            assert one.messages[-1] == (
                f"value reference {reference[0]} is of type {name}, not {type_}"
            )


@pytest.fixture(scope="module")
def all_types(tmp_path_factory: pytest.TempPathFactory) -> Unpacked3:
    d = Diagram("all", step=1e-3)
    for name in [*FLOATS, *INTEGERS, "Boolean"]:
        kind = "boolean" if name == "Boolean" else "integer" if name in INTEGERS else "real"
        u = d.input(f"in{name}", kind=kind)  # type: ignore[arg-type]
        d.output(f"out{name}", d.add(Convert("real"), f"c{name}", u=u) if kind != "real" else u)
    folder = tmp_path_factory.mktemp("all")
    types = {f"in{name}": name for name in (*FLOATS, *INTEGERS)}
    path = d.export_fmu(folder / "x.fmu", version="3.0", types=types, sources=False)
    assert validate_fmu(str(path)) == []
    return Unpacked3(path, folder / "x")


def make_loop() -> Diagram:
    d = Diagram("loop", step=1e-3)
    x = d.add(StateSpace([[-1.0]], [[2.0]], [[1.0]], [[0.25]]), "ss", u=d.input("u"))
    d.add(Sine(1.0, 3.0), "sine")
    d.output("y", x)
    d.output("s", d["sine"])
    d.output("n", d.add(Counter(), "n", u=d.add(Compare(">", 0.0), "up", u=d["sine"])))
    return d


def test_numbers_are_those_of_float64_rounded(tmp_path: Path) -> None:
    types = {"y": "Float32", "s": "Float32", "u": "Float32", "n": "UInt16"}
    tables = []
    for chosen in ({}, types):
        path = make_loop().export_fmu(
            tmp_path / "x.fmu", version="3.0", types=chosen, sources=False
        )
        assert validate_fmu(str(path)) == []
        tables.append(
            fmpy.simulate_fmu(str(path), stop_time=0.5, start_values={"u": 1.5}, step_size=1e-3)
        )
    for name in ("y", "s"):
        single = tables[0][name].astype(np.float32)
        np.testing.assert_array_equal(tables[1][name].astype(np.float32), single)
        assert len(np.unique(single)) > 100
    np.testing.assert_array_equal(tables[0]["n"], tables[1]["n"])


def test_derivatives_of_float32(tmp_path: Path) -> None:
    d = Diagram("linear")
    d.connect(d.input("u"), d.add(StateSpace([[-1.0]], [[2.0]], [[1.0]], [[0.25]]), "ss"))
    d.output("y", d["ss"])
    types = {"u": "Float32", "y": "Float32", "ss.initial": "Float32"}
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0", types=types, sources=False)
    one = Instance3(Unpacked3(path, tmp_path / "x")).start(u=1.0)
    assert one.directional(["y"], ["u"], [3.0]) == (OK, [0.75])
    assert one.adjoint(["y"], ["u"], [2.0]) == (OK, [0.5])
    status, found = one.output_derivatives(["y"])
    assert status == OK
    assert found == [pytest.approx(2.0, rel=1e-6)]  # dy/dt = 2 u - x


def test_start_values_are_rounded_in_the_plan_as_well(tmp_path: Path) -> None:
    """A tool that sets every variable to its start value changes nothing."""
    d = Diagram("start", step=1e-3)
    d.output("y", d.add(Gain(0.1), "k", u=d.input("u", default=0.3)))
    types = {"u": "Float32", "k.k": "Float32"}
    path = d.export_fmu(
        tmp_path / "x.fmu", version="3.0", types=types, limits={"k.k": (-0.1, 0.1)},
        nominal={"u": 0.7}, sources=False,
    )  # fmt: skip
    fmu = Unpacked3(path, tmp_path / "x")
    k, u = fmu.variables["k.k"], fmu.variables["u"]
    assert (k.get("start"), k.get("min"), k.get("max")) == ("0.1", "-0.1", "0.1")
    assert (u.get("start"), u.get("nominal")) == ("0.3", "0.7")
    plain, same = Instance3(fmu), Instance3(fmu)
    assert same.set("k.k", 0.1) == same.set("u", 0.3) == OK
    expected = float(np.float32(0.1)) * float(np.float32(0.3))
    assert plain.start().get("y") == same.start().get("y") == [expected]


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"speeed": "Float32"}, r"`types` names `speeed`, which is no variable .*`speed`"),
        ({"speed": "Float16"}, r"`speed` cannot be of type 'Float16'\..*Types: Float64, Float32"),
        ({"speed": 32}, r"`speed` cannot be of type 32"),
        ({"speed": "UInt8"}, r"`speed` is of kind real and cannot be of type UInt8: choose Float"),
        ({"n": "Float32"}, r"`n` is of kind integer and cannot be of type Float32: choose Int64"),
        ({"on": "UInt8"}, r"`on` is of kind boolean and cannot be of type UInt8: it has one type"),
        ({"n": "UInt8"}, r"the start value of `n` is -1, which does not fit UInt8"),
        ({"many": "UInt8"}, r"the start value of `many` is 256, which does not fit UInt8"),
        ({"m": "Int8"}, r"the maximum of `m` is 200, which does not fit Int8"),
        ({"m": "UInt8"}, r"the minimum of `m` is -100, which does not fit UInt8"),
        ({"big.k": "Float32"}, r"the start value of `big.k` is 1e\+39, which does not fit Float32"),
        ({"speed": "Float32"}, r"the nominal value of `speed` is .*, which does not fit Float32"),
        (["n"], r"`types` must be a dict"),
    ],
)  # fmt: skip
def test_what_an_export_refuses(tmp_path: Path, types: Any, message: str) -> None:
    d = Diagram("refused", step=1e-3)
    n = d.input("n", kind="integer", default=-1)
    d.output("m", d.add(Convert("integer"), "c", u=n))
    d.input("many", kind="integer", width=2, default=256)
    d.add(Gain(1e39), "big", u=d.input("speed"))
    d.output("on", d.add(Compare(">", 0.0), "over", u=d["big"]))
    with pytest.raises(BiellaError, match=message):
        d.export_fmu(
            tmp_path / "x.fmu", version="3.0", types=types, nominal={"speed": 1e-50},
            limits={"m": (-100, 200)},
        )  # fmt: skip
    assert not (tmp_path / "x.fmu").exists()


def test_fmi2_has_no_choice(tmp_path: Path) -> None:
    with pytest.raises(BiellaError, match=r'FMI 2\.0 has one type .*version="3\.0"'):
        make_loop().export_fmu(tmp_path / "x.fmu", types={"y": "Float32"})


@pytest.mark.parametrize("kind", ["me", "both"])
def test_model_exchange_keeps_its_states(tmp_path: Path, kind: str) -> None:
    d = Diagram("exchange", step=1e-3)
    d.output("x", d.add(Integrator(1.0), "i", u=d.input("u")))
    for name in ("states.i.x", "der(states.i.x)"):
        with pytest.raises(BiellaError, match=r"`types` names `.*`: states, derivatives"):
            d.export_fmu(tmp_path / "x.fmu", version="3.0", kind=kind, types={name: "Float32"})
    types = {"x": "Float32", "u": "Float32"}
    path = d.export_fmu(tmp_path / "x.fmu", version="3.0", kind=kind, types=types, sources=False)
    assert validate_fmu(str(path)) == []
    table = fmpy.simulate_fmu(
        str(path), stop_time=1.0, start_values={"u": 2.0}, fmi_type="ModelExchange"
    )
    assert table["x"][-1] == pytest.approx(3.0, rel=1e-5)
    e = Diagram("importer", step=0.01)
    e.add(Fmu(path, kind="me"), "f", u=e.add(Constant(2.0), "c"))
    assert simulate(e, 1.0)["f.x"][-1] == pytest.approx(3.0, rel=1e-6)


def test_clocks_and_types_together(tmp_path: Path) -> None:
    d = Diagram("clocked", step=1e-3)
    d.output("z", d.add(UnitDelay(), "z", u=d.input("u"), period=2e-3))
    path = d.export_fmu(
        tmp_path / "x.fmu", version="3.0", clocks=True, types={"z": "Float32"}, sources=False
    )
    assert validate_fmu(str(path)) == []
    assert Unpacked3(path, tmp_path / "x").variables["z"].get("clocks") is not None


def test_a_mechanism_has_types(tmp_path: Path) -> None:
    path = slider_crank(planar=True).export_fmu(
        tmp_path / "x.fmu", version="3.0", sources=False, outputs=["main.speed"],
        types={"main.speed": "Float32", "crank.mass": "Float32"},
    )  # fmt: skip
    assert validate_fmu(str(path)) == []
    found = Unpacked3(path, tmp_path / "x").variables
    assert found["main.speed"].tag == found["crank.mass"].tag == "Float32"


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "loop.py"
    source.write_text(
        "from biella import Diagram\n"
        "from biella.blocks import Convert, Gain\n\n"
        "def diagram():\n"
        "    d = Diagram('loop', step=1e-3)\n"
        "    d.output('y', d.add(Gain(2.0), 'k', u=d.input('u')))\n"
        "    d.output('m', d.add(Convert('integer'), 'c', u=d.input('n', kind='integer')))\n"
        "    return d\n"
    )
    target = tmp_path / "x.fmu"
    given = ["export", str(source), "-o", str(target), "--no-sources", "--type", "m=UInt16"]
    assert main([*given, "--fmi", "3", "--type", "y = Float32"]) == 0
    fmu = Unpacked3(target, tmp_path / "x")
    assert (fmu.variables["m"].tag, fmu.variables["y"].tag) == ("UInt16", "Float32")
    page = (tmp_path / "x" / "documentation" / "index.html").read_text(encoding="utf-8")
    assert "integer, UInt16" in page and "real, Float32" in page
    for more, message in (
        (["--fmi", "3", "--type", "u"], "--type expects NAME=TYPE, such as counts=UInt16, got 'u'"),
        ([], "FMI 2.0 has one type"),
    ):
        assert main([*given, *more]) == 1
        assert message in " ".join(capsys.readouterr().err.split())
