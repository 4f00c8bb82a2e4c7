"""FMUs as members of couplings: against native blocks, against closed forms, and when they fail."""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from specimen import STATES, TROUBLE, description, make_specimen
from studies import co_simulation as bench

from biella import BlockError, Diagram, DiagramError, Fmu, simulate
from biella.blocks import Constant, Convert, Expression, Gain, Integrator, Mux, Sine, Sum
from biella.demo import rig
from biella.scheduler.compile.coupling._coupling_options import CouplingWarning

pytestmark = pytest.mark.engine

METHODS = bench.METHODS
MASSES = ["displacement", "force"]
INTERPOLATES = f'{STATES} canInterpolateInputs="true"'
ANY_STEP = f'{INTERPOLATES} canHandleVariableCommunicationStepSize="true"'


@pytest.fixture(autouse=True)
def no_folder_is_left(tmp_path, monkeypatch):
    """Every test unpacks below a folder of its own, which must be empty afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    bench.fmu_folder.cache_clear()
    yield
    assert list(tmp_path.glob("biella-fmu-*")) == []


# -- mechanisms


def work(name: str, step: float, mode: bench.Mode) -> Diagram:
    if name == "crank":
        return bench.slider_crank(step, mode)
    return bench.two_masses(step, mode, shared=name == "force")


@pytest.mark.filterwarnings("ignore:gauss-seidel is equivalent to jacobi")
@pytest.mark.parametrize("extrapolation", [0, 1, 2])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "name, step, until", [("displacement", 0.02, 1), ("force", 0.02, 1), ("crank", 1.25e-3, 0.1)]
)
def test_fmus_do_what_native_blocks_do(name, step, until, method, extrapolation):
    """The FMU has Runge-Kutta steps of a quarter inside, the block takes four: rounding differs."""
    native, fmus = (
        simulate(work(name, step, mode), until, coupling=method, extrapolation=extrapolation)
        for mode in ("internal", "fmu")
    )
    for path in bench.CRANK_STATES if name == "crank" else bench.MASS_STATES:
        scale = np.abs(native[path]).max()
        assert fmus[path] == pytest.approx(native[path], abs=1e-12 * scale), path


def internal_solver_fmu(path: Path, plant: Any, step: float) -> Path:
    """The same block with an internal solver in a diagram of its own; dots become underscores."""
    d = Diagram(path.stem, step=step)
    d.add(plant, name="plant")
    for port in plant.inputs:
        name = port.name.replace(".", "_")
        d.connect(d.input(name, unit=str(port.unit)), plant[port.name])
    for port in plant.outputs:
        d.output(port.name.replace(".", "_"), plant[port.name])
    return d.export_fmu(path, sources=False)


def two_masses(folder: Path, step: float, fmus: bool, options: dict | None = None) -> Diagram:
    """Displacement/force; native blocks, or the same blocks in FMUs."""
    d = Diagram("two masses", step=step)
    motion, plants, dot = ["slide.displacement", "slide.speed"], [], "_" if fmus else "."
    for n, stiffness, damping in ((0, 30.0, 0.4), (1, 15.0, 0.2)):
        plant = bench.mass(n, stiffness, damping).block(
            ["push.force.x"], motion, mode="internal", substeps=4
        )
        if fmus:
            path = internal_solver_fmu(folder / f"{'ab'[n]}.fmu", plant, step)
            plant = Fmu(path, **(options or {}))
        plants.append(d.add(plant, name="ab"[n]))
    laws = ("k*x2 + d*v2", "k*(x1 - x2) + d*(v1 - v2)")
    for law, plant in zip(laws, plants, strict=True):
        force = d.add(Expression(law, parameters={"k": 20.0, "d": 0.3}, unit="N"))
        for port in force.input_index:
            quantity = {"x": "displacement", "v": "speed"}[port[0]]
            d.connect(plants[int(port[1]) - 1][f"slide{dot}{quantity}"], force[port])
        d.connect(force, plant[f"push{dot}force{dot}x"])
    return d


@pytest.mark.parametrize("extrapolation", [0, 1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_the_same_block_inside_an_fmu_gives_the_same_bits(tmp_path, method, extrapolation):
    native, fmus = (
        simulate(two_masses(tmp_path, 0.01, f), 0.5, coupling=method, extrapolation=extrapolation)
        for f in (False, True)
    )
    assert np.array_equal(native["a.slide.speed"], fmus["a.slide_speed"])
    assert np.array_equal(native["b.slide.displacement"], fmus["b.slide_displacement"])


@pytest.mark.parametrize("method", ["fixed-point", "newton"])
def test_the_elements_of_a_vector_are_iterated_together(tmp_path, method):
    """x' = A x by a vector of rates that an iterated step holds at the mean of both ends: the
    trapezoidal rule."""
    h, begin = 0.125, (1.0, -2.0, 0.5)
    a = np.array([[-1.0, 2.0, 0.0], [0.5, -3.0, 1.0], [0.0, 1.5, -0.5]])
    states = Diagram("states", step=h)
    states.add(Integrator(begin), name="x", u=states.input("rate", width=3))
    states.output("x", states["x"])
    path = states.export_fmu(tmp_path / "states.fmu", version="3.0", sources=False)
    d = Diagram("coupled", step=h)
    fmu = d.add(Fmu(path), name="f")
    d.connect(d.add(Gain(a), name="rate", u=fmu["x"]), fmu["rate"])
    d.couple(method=method, tolerance=1e-12, iterations=60)
    run = simulate(d, 1.0)
    step = np.linalg.solve(np.eye(3) - h / 2 * a, np.eye(3) + h / 2 * a)
    expected = [np.linalg.matrix_power(step, n) @ begin for n in range(run.length)]
    np.testing.assert_allclose(run["f.x"], expected, atol=1e-11)


def test_an_estimate_of_the_error_takes_fmus_back(tmp_path):
    """Halves and quarters of a step are steps of the FMU's too, and leave no trace."""
    plain = simulate(two_masses(tmp_path, 0.01, True), 0.5, coupling="jacobi", extrapolation=1)
    runs = [
        simulate(
            two_masses(tmp_path, 0.01, f), 0.5, coupling="jacobi", extrapolation=1, estimate_error=1
        )
        for f in (False, True)
    ]
    assert np.array_equal(plain["a.slide_speed"], runs[1]["a.slide_speed"])
    native, fmus = (run["coupling.expression.error"] for run in runs)
    assert fmus == pytest.approx(native, rel=1e-6, abs=1e-12)
    assert "order" in str(runs[1].coupling_report(tolerance=1e-3))


def mass_error(d: Diagram, method: str, extrapolation: int) -> float:
    run = simulate(d, 4.0, coupling=method, extrapolation=extrapolation)
    names = ["a.slide_displacement", "a.slide_speed", "b.slide_displacement", "b.slide_speed"]
    return float(np.abs([run[n][-1] for n in names] - bench.exact_two_masses()).max())


@pytest.mark.filterwarnings("ignore:gauss-seidel is equivalent to jacobi")
@pytest.mark.parametrize("extrapolation", [0, 1, 2])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("split", MASSES)
def test_orders_of_coupled_fmus(split, method, extrapolation):
    """Against the closed form: hold + 1, and 2 where the mean of both ends is held."""
    expected = max(extrapolation + 1, 2 if method in ("fixed-point", "newton") else 1)
    measure = bench.mass_error(shared=split == "force")
    coarse, fine = (measure(step, method, extrapolation, "fmu") for step in (0.01, 0.005))
    assert np.log2(coarse / fine) == pytest.approx(expected, abs=0.2)


def without_flag(path: Path, flag: str) -> None:
    """Take a capability out of the description of an FMU."""
    old = path.with_suffix(".old")
    shutil.move(path, old)
    with zipfile.ZipFile(old) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "modelDescription.xml":
                text = data.decode()
                assert f'{flag}="true"' in text
                data = text.replace(f'{flag}="true"', f'{flag}="false"').encode()
            target.writestr(name, data)


def without_input_derivatives(folder: Path, step: float, **options: Any) -> Diagram:
    two_masses(folder, step, True)  # writes the files
    for name in "ab":
        without_flag(folder / f"{name}.fmu", "canInterpolateInputs")
    d = Diagram("two masses", step=step)
    plants = [d.add(Fmu(folder / f"{n}.fmu", period=step, **options), name=n) for n in "ab"]
    for law, plant in zip(("k*x2 + d*v2", "k*(x1 - x2) + d*(v1 - v2)"), plants, strict=True):
        force = d.add(Expression(law, parameters={"k": 20.0, "d": 0.3}, unit="N"))
        for port in force.input_index:
            quantity = {"x": "displacement", "v": "speed"}[port[0]]
            d.connect(plants[int(port[1]) - 1][f"slide_{quantity}"], force[port])
        d.connect(force, plant["push_force_x"])
    return d


@pytest.mark.parametrize("method", ["fixed-point", "newton"])
def test_an_fmu_that_cannot_interpolate_gets_means(tmp_path, method):
    """Second order; with n substeps each has a mean of its own, and the rest is n² less."""
    errors = [mass_error(without_input_derivatives(tmp_path, h), method, 2) for h in (0.02, 0.01)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.25)
    finer = [
        mass_error(without_input_derivatives(tmp_path, 0.02, substeps=n), method, 2) for n in (2, 4)
    ]
    full = mass_error(two_masses(tmp_path, 0.02, True), method, 2)
    parts = [(error - full) / (errors[0] - full) for error in finer]
    assert parts == pytest.approx([1 / 4, 1 / 16], abs=0.06)


# -- what an FMU is told about its inputs


def followed(
    path: Path, extrapolation: int, step: float = 0.1, until: float = 1.0, **options: Any
) -> Any:
    """A specimen whose w is 3 t²: known at the end of each step, as nothing else drives it."""
    d = Diagram("followed", step=step)
    f = d.add(Fmu(path, inputs=["w"], outputs=["s", "q"], **options), name="f")
    square = d.add(Expression("3*t*t"), name="square")
    d.connect(d.add(Mux(2), name="mux"), f["w"])
    d.connect(square, d["mux"]["u1"])
    d.connect(d.add(Constant(0.0), name="zero"), d["mux"]["u2"])
    return simulate(d, until, coupling="gauss-seidel", extrapolation=extrapolation)


def integrals(extrapolation: int, count: int = 10, h: float = 0.1) -> np.ndarray:
    """s and q from the polynomials that a hold makes of 3 t², integrated exactly."""
    w = 3 * (h * np.arange(count + 1)) ** 2
    rows = [(0.0, 0.0)]
    for k in range(count):
        slope, before = (w[k + 1] - w[k]) / h, (w[k] - w[k - 1]) / h if k else 0.0
        course = Polynomial([w[k + 1]] if extrapolation == 0 else [w[k], slope])
        if extrapolation == 2 and k > 0:
            bend = (slope - before) / (2 * h)
            course = Polynomial([w[k], slope - bend * h, bend])
        s = course.integ() + rows[-1][0]
        rows.append((s(h), rows[-1][1] + s.integ()(h)))
    return np.array(rows)


@pytest.mark.parametrize("substeps", [1, 3])
@pytest.mark.parametrize("extrapolation", [0, 1, 2])
def test_values_and_derivatives_arrive_at_every_substep(tmp_path, extrapolation, substeps):
    path = make_specimen(tmp_path / "s.fmu", xml=description(INTERPOLATES))
    found = followed(path, extrapolation, substeps=substeps)
    expected = integrals(extrapolation)
    assert found["f.s"] == pytest.approx(expected[:, 0], abs=1e-13)
    assert found["f.q"] == pytest.approx(expected[:, 1], abs=1e-13)


def test_an_fmu_that_discards_second_derivatives_gets_the_nearest_line(tmp_path):
    """Orthogonal to the rest, so that both integrals stay exact."""
    flags = ("-DLARGEST_ORDER=1",)
    path = make_specimen(tmp_path / "s.fmu", xml=description(INTERPOLATES), flags=flags)
    expected = integrals(2)
    for substeps in (1, 3):
        found = followed(path, 2, substeps=substeps)
        assert found["f.s"] == pytest.approx(expected[:, 0], abs=1e-13)
        assert found["f.q"] == pytest.approx(expected[:, 1], abs=1e-13)


def test_an_fmu_that_fails_at_second_derivatives_says_what_to_do(tmp_path):
    flags = ("-DLARGEST_ORDER=1", "-DREFUSAL=ERROR")
    path = make_specimen(tmp_path / "s.fmu", xml=description(INTERPOLATES), flags=flags)
    assert followed(path, 1)["f.s"] == pytest.approx(integrals(1)[:, 0], abs=1e-13)
    with pytest.raises(
        BlockError, match=r"SetRealInputDerivatives of order 2, which extrapolation=1 does"
    ):
        followed(path, 2)


def test_means_keep_the_integral(tmp_path):
    """Without canInterpolateInputs s is still exact, at every substep; q is not."""
    path = make_specimen(tmp_path / "s.fmu")
    for substeps in (1, 3):
        found = followed(path, 2, substeps=substeps)
        assert found["f.s"] == pytest.approx(integrals(2)[:, 0], abs=1e-13)
        assert abs(found["f.q"][-1] - integrals(2)[-1, 1]) > 1e-4


# -- pairs of specimens


def pair(path: Path, others: dict[str, Any] | None = None, **options: Any) -> Diagram:
    """a.s' = -b.s, b.s' = a.s + 1, no instantaneous feedthrough."""
    d = Diagram("pair", step=0.01)
    a = d.add(Fmu(path, **options), name="a")
    b = d.add(Fmu(path, **(options | (others or {}))), name="b")
    zero = d.add(Constant(0.0), name="zero")
    back, plus = d.add(Gain(-1.0), name="back"), d.add(Sum("++"), name="plus")
    d.connect(b["s"], back)
    d.connect(a["s"], plus["u1"])
    d.connect(d.add(Constant(1.0), name="one"), plus["u2"])
    for name, source in (("a", back), ("b", plus)):
        mux = d.add(Mux(2), name=f"to_{name}")
        d.connect(source, mux["u1"])
        d.connect(zero, mux["u2"])
        d.connect(mux, d[name]["w"])
    return d


@pytest.fixture
def specimen(tmp_path):
    return make_specimen(tmp_path / "specimen.fmu")


def test_a_pair_follows_its_closed_form(tmp_path):
    """b = sin t, a = cos t - 1."""
    path = make_specimen(tmp_path / "s.fmu", xml=description(INTERPOLATES))
    run = simulate(pair(path), 1.0, coupling="newton", extrapolation=2)
    assert run["b.s"] == pytest.approx(np.sin(run.t), abs=1e-6)
    assert run["a.s"] == pytest.approx(np.cos(run.t) - 1, abs=1e-6)


def test_fmus_that_cannot_go_back_are_named_and_coupled_explicitly(tmp_path):
    path = make_specimen(tmp_path / "s.fmu", xml=description(""), flags=("-DWITHOUT_STATES",))
    with pytest.warns(CouplingWarning, match=r"`a`, `b` cannot repeat.*gauss-seidel instead of"):
        run = simulate(pair(path), 0.2, coupling="newton", extrapolation=1)
    seidel = simulate(pair(path), 0.2, coupling="gauss-seidel", extrapolation=1)
    assert np.array_equal(run["a.s"], seidel["a.s"])
    assert seidel["b.s"] == pytest.approx(np.sin(seidel.t), abs=1e-4)
    d = pair(path)
    d.couple("a", "b", method="fixed-point")
    with pytest.raises(DiagramError, match=r"`a`, `b` cannot repeat.*method='gauss-seidel'"):
        d.compile()


@pytest.mark.parametrize("options", [{"isolate": True}, {"backend": "fmpy"}], ids=["own", "fmpy"])
def test_fmus_run_elsewhere_are_coupled_explicitly(specimen, options):
    for method, extrapolation in (("jacobi", 1), ("gauss-seidel", 2)):
        runs = [
            simulate(
                pair(specimen, others), 0.1, coupling=method, extrapolation=min(extrapolation, 1)
            )
            for others in (dict[str, Any](), options)
        ]
        assert np.array_equal(runs[0]["b.s"], runs[1]["b.s"])
        assert np.array_equal(runs[0]["a.q"], runs[1]["a.q"])


@pytest.mark.parametrize("method", ["gauss-seidel", "fixed-point", "newton"])
@pytest.mark.parametrize("trouble", ["error", "discard", "fatal", "get_error"])
def test_an_fmu_that_fails_within_a_coupled_step(tmp_path, specimen, trouble, method):
    diaries = [tmp_path / "a", tmp_path / "b"]
    bad = {"trouble": TROUBLE[trouble], "at": 0.05, "diary": str(diaries[1])}
    d = pair(specimen, {"parameters": bad}, parameters={"diary": str(diaries[0])})
    with pytest.raises(BlockError) as caught:
        simulate(d, 0.1, coupling=method, extrapolation=1)
    message = str(caught.value)
    assert re.match(r"`b` .*FMU `specimen.fmu` \(instance `specimen`\)", message)
    returned = {"get_error": "fmi2Error", "error": "fmi2Error"}.get(
        trouble, f"fmi2{trouble.title()}"
    )
    assert f"returned {returned} at t = 0.05" in message
    if trouble == "error":
        assert "its last messages: [fmi2Error, error] x = " in message
    # What was recorded is there, and only the culprit was not ended in order.
    last = 0.04 if trouble == "get_error" else 0.05
    assert caught.value.result is not None
    assert caught.value.result.t[-1] == pytest.approx(last)
    assert caught.value.result["a.s"].shape == caught.value.result.t.shape
    assert diaries[0].read_text().split()[-2:] == ["terminate", "free"]
    ends = {"error": ["free"], "get_error": ["free"], "discard": ["terminate", "free"], "fatal": []}
    lives = diaries[1].read_text().split()
    assert lives[lives.index("exit") + 1 :] == ends[trouble]


@pytest.mark.parametrize("method", ["fixed-point", "newton"])
def test_a_step_that_an_fmu_discards_is_taken_in_parts(tmp_path, method):
    """It takes no steps above 3 ms, so that 10 ms are four quarters; what it said is forgotten."""
    limits = {"parameters": {"trouble": TROUBLE["too_long"], "at": 0.003}}
    path = make_specimen(tmp_path / "any.fmu", xml=description(ANY_STEP))
    with pair(path, limits).compile(coupling=method, extrapolation=2).instantiate() as instance:
        instance.run(20)
        assert instance.get("coupling.a+b.shortened") == 20
        assert instance.get("b.s") == pytest.approx(np.sin(0.2), abs=1e-7)
        assert instance.get("a.s") == pytest.approx(np.cos(0.2) - 1, abs=1e-7)
        number = next(n for n, block in enumerate(instance.plan.blocks) if block.path == "b")
        assert instance.library.bl_fmu_messages(instance.handle, number) == b""
    fixed = make_specimen(tmp_path / "fixed.fmu", xml=description(INTERPOLATES))
    with pytest.raises(BlockError, match=r"fmi2DoStep returned fmi2Discard.*0.01 s are too long"):
        simulate(pair(fixed, limits), 0.2, coupling=method, extrapolation=2)


@pytest.mark.parametrize("wanted", [30.0, 40.0])
def test_a_pin_in_thin_oil_does_not_end_the_run(tmp_path, monkeypatch, wanted):
    """Iterates throw the journal far beyond its bush: the film refuses, or the mechanism inside the
    FMU, with fmi2Error."""
    monkeypatch.setattr(rig, "VISCOSITY", 0.1)
    monkeypatch.setattr(rig, "WANTED", wanted)
    d = rig.diagram(rig.export_plant(tmp_path / "crank.fmu"))
    d.couplings.clear()
    d.couple("plant", method="newton", extrapolation=0, halvings=0)
    edges = {"encoder.seed": 0}  # with which iterates are thrown that far
    with pytest.raises(BlockError, match=r"beyond its bush|returned fmi2Error|not finite"):
        simulate(d, 0.7, parameters=edges)
    d.couplings.clear()
    d.couple("plant", method="newton", extrapolation=0, failure="error")
    pin = simulate(d, 0.7, parameters=edges)["crank_pin.journal_position"]
    assert np.hypot(*pin.T).max() < rig.CLEARANCE


def test_an_fmu_that_ends_the_run_within_an_iterated_step(tmp_path, specimen):
    diary = tmp_path / "diary"
    ends = {"trouble": TROUBLE["terminated"], "at": 0.05, "diary": str(diary)}
    run = simulate(pair(specimen, {"parameters": ends}), 0.1, coupling="newton", extrapolation=1)
    assert run.t[-1] == pytest.approx(0.05)
    assert "it requested the end of the simulation at t = 0.05" in run.info["stopped"]
    assert diary.read_text().split()[-2:] == ["terminate", "free"]


def test_initialization_ends_once_with_the_inputs_of_that_instant(tmp_path, specimen):
    """Though the step is repeated from its start: what is taken back is a step, not the start."""
    diary = tmp_path / "diary"
    d = pair(specimen, {"parameters": {"diary": str(diary)}})
    run = simulate(d, 0.05, coupling="newton", extrapolation=0)
    assert run["coupling.a+b.iterations"].max() > 1
    assert diary.read_text().split().count("exit") == 1


def counter(path: Path) -> Path:
    """An integral, and its whole tenths: a number that changes within steps."""
    d = Diagram("counter", step=0.01)
    level = d.add(Integrator(initial=0.31), name="level")
    d.connect(d.input("rate"), level)
    tenths = d.add(Expression("floor(10*x)"), name="tenths")
    d.connect(level, tenths["x"])
    whole = d.add(Convert("integer"), name="whole")
    d.connect(tenths, whole)
    d.output("level", level)
    d.output("count", whole)
    return d.export_fmu(path, sources=False)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extrapolation", [0, 1, 2])
def test_counts_are_held_within_a_step(tmp_path, specimen, method, extrapolation):
    """q of b adds up n - 3, each n as it was at its tick, whatever the other signals do."""
    path = counter(tmp_path / "counter.fmu")

    def run(counted: bool) -> Any:
        d = Diagram("counting", step=0.01)
        a, b = d.add(Fmu(path), name="a"), d.add(Fmu(specimen), name="b")
        rate = d.add(Expression("5 + s"), name="rate")
        d.connect(b["s"], rate["s"])
        d.connect(rate, a["rate"])
        mux = d.add(Mux(2), name="mux")
        d.connect(a["level"], mux["u1"])
        d.connect(d.add(Constant(0.0), name="zero"), mux["u2"])
        d.connect(mux, b["w"])
        if counted:
            d.connect(a["count"], b["n"])
        return simulate(d, 0.2, coupling=method, extrapolation=extrapolation)

    counting, plain = run(True), run(False)
    assert counting["a.count"].max() >= 13
    added = np.cumsum(0.01 * (counting["a.count"] - 3))[:-1]
    assert (counting["b.q"] - plain["b.q"])[1:] == pytest.approx(added, abs=1e-13)


def test_an_input_that_came_back_is_set_again(tmp_path):
    """u = 0, 1, 1: foreseen as 2 at the end of the second step, and so the FMU has it."""
    path = static_fmu(tmp_path / "f.fmu", {"y": "2*u"}, step=1.0)
    d = Diagram("back", step=1.0)
    f = d.add(Fmu(path), name="f")
    d.connect(d.add(Expression("min(t, 1)"), name="u"), f["u"])
    run = simulate(d, 3.0, coupling="jacobi", extrapolation=1)
    assert np.array_equal(run["f.y"], [0.0, 2.0, 2.0, 2.0])


# -- loops at one instant


def static_fmu(path: Path, outputs: dict[str, str], step: float = 0.01) -> Path:
    """Expressions of the inputs, and nothing else."""
    d = Diagram(path.stem, step=step)
    inputs: dict[str, Any] = {}
    for name, formula in outputs.items():
        block = d.add(Expression(formula), name=f"make_{name}")
        for port in block.input_index:
            if port not in inputs:
                inputs[port] = d.input(port)
            d.connect(inputs[port], block[port])
        d.output(name, block)
    return d.export_fmu(path, sources=False)


@pytest.mark.parametrize("backend", [{}, {"isolate": True}, {"backend": "fmpy"}])
def test_a_loop_of_three_variables_across_two_fmus(tmp_path, backend):
    """x = cos z + r, y = x z / 4, z = (x - y) / 3; found by bisection on z alone, at the start, in
    initialization mode, and at every tick after it."""
    first = static_fmu(tmp_path / "first.fmu", {"x": "cos(z) + r", "y": "x2*z/4"})
    second = static_fmu(tmp_path / "second.fmu", {"z": "(x - y)/3"})
    d = Diagram("loop", step=0.01)
    a, b = d.add(Fmu(first, **backend), name="a"), d.add(Fmu(second, **backend), name="b")
    d.connect(a["x"], a["x2"])
    d.connect(a["x"], b["x"])
    d.connect(a["y"], b["y"])
    d.connect(b["z"], a["z"])
    d.connect(d.add(Sine(amplitude=2.0, frequency=1.0), name="r"), a["r"])
    assert len(d.compile().loops) == 1
    run = simulate(d, 0.1)
    for k, r in enumerate(run["r"]):
        low, high = -5.0, 5.0
        for _ in range(200):
            z = 0.5 * (low + high)
            x = np.cos(z) + r
            low, high = (z, high) if (x - x * z / 4) / 3 > z else (low, z)
        assert run["b.z"][k] == pytest.approx(z, abs=1e-9)
        assert run["a.x"][k] == pytest.approx(x, abs=1e-9)
        assert run["a.y"][k] == pytest.approx(x * z / 4, abs=1e-9)


def test_a_loop_is_solved_with_the_derivatives_that_an_fmu_gives(tmp_path):
    """y = 2 u + x with u = 1 - y / 4, so y = (2 + x) / 1.5; also where the call is discarded."""
    flags = 'providesDirectionalDerivative="true"'
    asked = {}
    for name, options in (("gives", ()), ("discards", ("-DWITHOUT_DERIVATIVES",))):
        path = make_specimen(tmp_path / "s.fmu", xml=description(flags), flags=options)
        diary = tmp_path / name
        d = Diagram("loop", step=0.01)
        given: dict[str, str | float] = {"diary": str(diary), "x": 0.5}
        f = d.add(Fmu(path, inputs=["u"], outputs=["y"], parameters=given), name="f")
        law = d.add(Expression("1 - y/4", unit="m"), name="law")
        d.connect(f["y"], law["y"])
        d.connect(law, f["u"])
        run = simulate(d, 0.02)
        assert run["f.y"][0] == pytest.approx(2.5 / 1.5, rel=1e-12)
        assert run["law"] == pytest.approx(1 - run["f.y"] / 4, rel=1e-12)
        lives = diary.read_text().split()
        asked[name] = lives.count("derivative")
        assert lives.index("derivative") < lives.index("exit")  # in initialization mode
    # One step of Newton's method at each of three ticks, or two for rounding: the loop is linear.
    # Twice as many once more, and one Jacobian, where the loop is checked as the run starts.
    assert 3 <= asked["gives"] <= 11 and asked["discards"] == 1


@pytest.mark.parametrize("torn", [True, False])
def test_an_output_that_leads_to_another_of_the_same_block(tmp_path, torn):
    """y = 3 x2 with x2 = x = 2 u + 1 is of this tick, not of the last evaluation."""
    path = static_fmu(tmp_path / "f.fmu", {"x": "2*u + 1", "y": "3*x2"})
    d = Diagram("back", step=0.01)
    f = d.add(Fmu(path), name="f")
    d.connect(f["x"], f["x2"])
    source: Any = d.add(Sine(), name="u")
    if torn:  # u = sin - y / 10: x = 1 + 2 sin - 0.6 x
        total = d.add(Sum("++"), name="total")
        d.connect(source, total["u1"])
        back = d.add(Gain(-0.1), name="back")
        d.connect(f["y"], back)
        d.connect(back, total["u2"])
        source = total
    d.connect(source, f["u"])
    run = simulate(d, 0.1)
    x = 1 + 2 * run["u"] if not torn else (1 + 2 * run["u"]) / 1.6
    assert run["f.x"] == pytest.approx(x, abs=1e-12)
    assert run["f.y"] == pytest.approx(3 * x, abs=1e-12)


# -- a coupling inside an FMU


def driven(step: float, mode: str) -> tuple[Diagram, Any]:
    """The two masses, and the port of one more force on the first."""
    d = Diagram("driven", step=step, coupling="newton", extrapolation=2)
    options = {"mode": mode, "substeps": 4} if mode == "internal" else {"mode": mode}
    first, second = bench.mass(0, 30.0, 0.4), bench.mass(1, 15.0, 0.2)
    first.force("drive", first.bodies[0].marker("tip"), (0.0, 0.0))
    motion = ["slide.displacement", "slide.speed"]
    a = d.add(first.block(["push.force.x", "drive.force.x"], motion, **options), name="a")
    b = d.add(second.block(["push.force.x"], motion, **options), name="b")
    for law, plant in zip(("k*x2 + d*v2", "k*(x1 - x2) + d*(v1 - v2)"), (a, b), strict=True):
        force = d.add(Expression(law, parameters={"k": 20.0, "d": 0.3}, unit="N"))
        for port in force.input_index:
            quantity = {"x": "displacement", "v": "speed"}[port[0]]
            d.connect((a, b)[int(port[1]) - 1][f"slide.{quantity}"], force[port])
        d.connect(force, plant["push.force.x"])
    return d, a["drive.force.x"]


def shake() -> Sine:
    return Sine(amplitude=3.0, frequency=1.5, unit="N")


def test_input_derivatives_of_an_fmu_reach_the_members_of_its_couplings(tmp_path):
    """A master that interpolates the drive gets the order of its hold from an FMU whose own parts
    are coupled at least as well; against the whole as one, in steps that are far smaller."""
    d, port = driven(5e-4, "continuous")
    d.connect(d.add(shake(), name="shake"), port)
    whole = simulate(d, 2.0)["b.slide.speed"][-1]

    def error(step: float, extrapolation: int) -> float:
        inner, drive = driven(step, "internal")
        inner.connect(inner.input("drive", unit="N"), drive)
        inner.output("speed", inner["b"]["slide.speed"])
        outer = Diagram("outer", step=step)
        f = outer.add(Fmu(inner.export_fmu(tmp_path / "f.fmu", sources=False)), name="f")
        outer.connect(outer.add(shake(), name="shake"), f["drive"])
        run = simulate(outer, 2.0, coupling="gauss-seidel", extrapolation=extrapolation)
        return float(abs(run["f.speed"][-1] - whole))

    for extrapolation in (1, 2):
        order = np.log2(error(0.02, extrapolation) / error(0.01, extrapolation))
        assert order == pytest.approx(extrapolation + 1, abs=0.3), extrapolation


@pytest.mark.parametrize("method", ["fixed-point", "newton"])
def test_a_repeated_step_promises_what_it_keeps(tmp_path, method):
    """Nothing from before the start of a repeated step is restored, so its flag is fmi2True.

    From a later part of it the run may go back to its start: fmi2False.
    """
    diary = tmp_path / "diary"
    path = make_specimen(tmp_path / "s.fmu", flags=("-DCOMMITS",))
    simulate(pair(path, parameters={"diary": str(diary)}), 0.02, coupling=method)
    steps = [line for line in diary.read_text().split("\n") if line.startswith("step")]
    assert len(steps) > 8 and set(steps) == {"step 0 1", "step 0.01 1"}
    diary.unlink()
    d = pair(path, parameters={"diary": str(diary)}, substeps=2)
    simulate(d, 0.02, coupling=method)
    steps = [line for line in diary.read_text().split("\n") if line.startswith("step")]
    assert set(steps) == {"step 0 1", "step 0.005 0", "step 0.01 1", "step 0.015 0"}


@pytest.mark.parametrize("method", ["fixed-point", "newton"])
def test_an_fmu_that_keeps_a_step_only_if_it_is_final_is_coupled_too(tmp_path, specimen, method):
    committing = make_specimen(tmp_path / "c.fmu", flags=("-DCOMMITS",))
    runs = [simulate(pair(path), 0.5, coupling=method) for path in (specimen, committing)]
    assert np.array_equal(runs[0]["a.s"], runs[1]["a.s"])


def without_dependencies(path: Path) -> None:
    """Write the description anew so that any output may depend on any input at once."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    text = files["modelDescription.xml"].decode()
    text, count = re.subn(r' dependencies="[^"]*" dependenciesKind="[^"]*"', "", text)
    assert count
    files["modelDescription.xml"] = text.encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("extrapolation", [0, 1, 2])
def test_gauss_seidel_where_nothing_is_declared_about_dependencies(tmp_path, extrapolation):
    """An output that may depend on inputs of its own FMU is still known once that is advanced."""
    known = two_masses(tmp_path, 0.01, True)
    runs = {
        m: simulate(known, 1.0, coupling=m, extrapolation=extrapolation)
        for m in ("jacobi", "gauss-seidel")
    }
    for name in "ab":
        without_dependencies(tmp_path / f"{name}.fmu")
    d = Diagram("nothing declared", step=0.01, coupling="gauss-seidel", extrapolation=extrapolation)
    for name in "ab":
        d.add(Fmu(tmp_path / f"{name}.fmu"), name=name)
    for plant, law in zip("ab", ("k*x2 + d*v2", "k*(x1 - x2) + d*(v1 - v2)"), strict=True):
        force = d.add(Expression(law, parameters={"k": 20.0, "d": 0.3}, unit="N"))
        for port in force.input_index:
            quantity = {"x": "displacement", "v": "speed"}[port[0]]
            d.connect(f"{'ab'[int(port[1]) - 1]}.slide_{quantity}", force[port])
        d.connect(force, f"{plant}.push_force_x")
    assert d.compile().meta["loops"]  # as far as is declared
    run = simulate(d, 1.0)
    for path in ("a.slide_speed", "b.slide_displacement"):
        assert run[path] == pytest.approx(runs["gauss-seidel"][path], abs=1e-12)
        assert np.abs(run[path] - runs["jacobi"][path]).max() > 1e-7


def masses_that_feel_accelerations(folder: Path, fmus: bool) -> Diagram:
    """The force on each mass depends at once on the force on the other one."""
    d = Diagram("accelerations", step=0.01)
    motion, dot = ["slide.displacement", "slide.speed", "slide.acceleration"], "_" if fmus else "."
    for n, stiffness, damping in ((0, 30.0, 0.4), (1, 15.0, 0.2)):
        plant = bench.mass(n, stiffness, damping).block(
            ["push.force.x"], motion, mode="internal", substeps=4
        )
        if fmus:
            plant = Fmu(internal_solver_fmu(folder / f"{'ab'[n]}.fmu", plant, 0.01))
        d.add(plant, name="ab"[n])
    for plant, law in zip("ab", ("20*x2 + 0.3*v2 - 0.2*a2", "20*(x1 - x2) - 0.3*a1"), strict=True):
        force = d.add(Expression(law, unit="N"))
        for port in force.input_index:
            quantity = {"x": "displacement", "v": "speed", "a": "acceleration"}[port[0]]
            d.connect(f"{'ab'[int(port[1]) - 1]}.slide{dot}{quantity}", force[port])
        d.connect(force, f"{plant}.push{dot}force{dot}x")
    return d


@pytest.mark.parametrize("extrapolation", [0, 1, 2])
def test_gauss_seidel_where_outputs_depend_on_inputs_from_later_members(tmp_path, extrapolation):
    """These inputs are extrapolated, also those of an FMU."""
    native, fmus = (
        simulate(
            masses_that_feel_accelerations(tmp_path, f),
            0.5,
            coupling="gauss-seidel",
            extrapolation=extrapolation,
        )
        for f in (False, True)
    )
    for native_path, path in (
        ("a.slide.speed", "a.slide_speed"),
        ("b.slide.speed", "b.slide_speed"),
    ):
        assert fmus[path] == pytest.approx(native[native_path], abs=1e-12)
