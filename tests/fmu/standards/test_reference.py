"""Reference results in FMUs: written, compared, and noticed where they are tampered with."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu

from biella import Diagram, FmuError, simulate
from biella.blocks import Compare, Gain, Pendulum, Playback, Time
from biella.fmu import Experiment, check_reference
from biella.fmu.standards._experiments import FOLDER, MANIFEST
from biella.fmu.standards._reference import compare, read_table

from .shafts import plant
from .test_terminal_ports import replace

pytestmark = pytest.mark.engine

TORQUE = "time,torque\n0,0\n0.1,0.5\n0.1,-0.5\n0.3,0\n"  # with a jump
RESULTS = f"{FOLDER}/01-driven-ref.csv"


@pytest.fixture
def torque(tmp_path):
    path = tmp_path / "torque.csv"
    path.write_text(TORQUE)
    return path


def make(path, torque, **options):
    driven = Experiment(
        until=0.3, name="driven", inputs=torque, parameters={"pendulum.damping": 0.3}
    )
    return plant().export_fmu(path, reference=driven, **options)


@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize("kind", ["cs", "me"])
def test_results_of_an_export_pass(tmp_path, torque, version, kind):
    path = make(tmp_path / "plant.fmu", torque, version=version, kind=kind)
    assert validate_fmu(str(path)) == []
    (found,) = check_reference(path)
    assert found.passed and found.tolerance == 1e-6
    assert [item.variable for item in found.deviations] == ["angle", "speed"]
    assert [item.largest for item in found.deviations] == [0.0, 0.0]


def test_results_are_those_of_the_diagram(tmp_path, torque):
    """Run without FMI, by `simulate`, with the same inputs and parameters."""
    path = make(tmp_path / "plant.fmu", torque)
    with zipfile.ZipFile(path) as archive:
        times, columns = read_table(RESULTS, archive.read(RESULTS))
    d = Diagram("whole", step=1e-3)
    points = [0.0, 0.1, 0.1, 0.3], [0.0, 0.5, -0.5, 0.0]
    played = d.add(Playback(*points, unit="N.m"), name="played")
    d.connect(played, d.add(Pendulum(angle=0.2, damping=0.3), name="pendulum"))
    result = simulate(d, 0.3)
    assert np.array_equal(times, result.t)
    # An FMU holds its input over a step, the diagram interpolates: of first order in the step.
    assert np.abs(columns["angle"] - result["pendulum.angle"]).max() < 1e-3
    assert np.abs(columns["angle"] - columns["angle"][0]).max() > 0.01


def test_another_importer_gives_them_too(tmp_path, torque):
    path = make(tmp_path / "plant.fmu", torque)
    with zipfile.ZipFile(path) as archive:
        times, columns = read_table(RESULTS, archive.read(RESULTS))
        stimuli = archive.read(f"{FOLDER}/01-driven-in.csv").decode()
    assert stimuli == TORQUE
    free = plant().export_fmu(tmp_path / "free.fmu", reference=Experiment(until=0.3, name="driven"))
    with zipfile.ZipFile(free) as archive:
        times, columns = read_table(RESULTS, archive.read(RESULTS))
    result = fmpy.simulate_fmu(str(free), stop_time=0.3, output_interval=1e-3)
    assert np.allclose(result["time"], times, atol=1e-12)
    assert np.abs(result["angle"] - columns["angle"]).max() == 0.0


@pytest.mark.parametrize(
    ("member", "old", "new", "message"),
    [
        (f"{FOLDER}/01-driven-in.csv", "0.5\n0.1", "0.6\n0.1", ""),
        (f"{FOLDER}/01-driven-parameters.ssv", '"0.3"', '"0.31"', ""),
        (f"{FOLDER}/experiments.exp", 'stepSize="0.001"', 'stepSize="0.01"', ""),
        (f"{FOLDER}/experiments.exp", 'stopTime="0.3"', 'stopTime="0.2"', "run from 0 s to 0.2 s"),
        (RESULTS, "angle", "angel", "have angel, which the FMU does not have as outputs"),
        (RESULTS, "time,", "time,,", "row 2: 3 cells instead of 4"),
        (f"{FOLDER}/01-driven-in.csv", "torque", "torc", "no such input"),
        (f"{FOLDER}/01-driven-parameters.ssv", "pendulum.damping", "dampening", "no variable"),
    ],
)
def test_tampering_is_noticed(tmp_path, torque, member, old, new, message):
    """Inputs, parameters, times and results: each is part of the experiment."""
    path = make(tmp_path / "plant.fmu", torque)
    wrong = replace(path, tmp_path / "wrong.fmu", (old, new), name=member)
    (found,) = check_reference(wrong)
    assert not found.passed
    assert message in found.problem
    assert bool(found.problem) == bool(message)


def test_one_changed_value_is_noticed(tmp_path, torque):
    path = make(tmp_path / "plant.fmu", torque)
    with zipfile.ZipFile(path) as archive:
        lines = archive.read(RESULTS).decode().split("\n")
    time, angle, speed = lines[150].split(",")
    other = f"{time},{float(angle) + 1e-6!r},{speed}"
    wrong = replace(path, tmp_path / "wrong.fmu", (lines[150], other), name=RESULTS)
    (found,) = check_reference(wrong)
    bad, good = found.deviations
    assert (bad.variable, bad.passed, good.passed) == ("angle", False, True)
    assert bad.time == float(time) and bad.largest == pytest.approx(1e-6, rel=1e-6)
    assert check_reference(wrong, tolerance=1e-4)[0].passed


def test_own_results_may_be_given(tmp_path):
    measured = tmp_path / "measured.csv"
    measured.write_text("time,angle [rad]\n0,0.2\n0.01,0.2\n")
    close = Experiment(until=0.02, results=measured, tolerance=0.01)
    (found,) = check_reference(plant().export_fmu(tmp_path / "p.fmu", reference=close))
    assert found.passed
    measured.write_text("time,angle\n0,0.2\n0.01,0.3\n")
    (found,) = check_reference(plant().export_fmu(tmp_path / "q.fmu", reference=close))
    assert not found.passed


def test_discrete_outputs_and_vectors(tmp_path):
    d = Diagram("mixed", step=0.01)
    above = d.add(Compare(">", 0.5), name="above")
    d.connect(d.add(Time(), name="clock"), above)
    d.output("above", above)
    gain = d.add(Gain([1.0, 2.0]), name="gain")
    d.connect(d.input("force", width=2), gain)
    d.output("moved", gain)
    stimuli = tmp_path / "force.csv"
    stimuli.write_text("time,force[0],force[1]\n0,1,2\n1,3,4\n")
    for version in ("2.0", "3.0"):
        path = d.export_fmu(
            tmp_path / f"{version}.fmu", version=version,
            reference=Experiment(until=1.0, inputs=stimuli, name="driven"),
        )  # fmt: skip
        (found,) = check_reference(path)
        assert found.passed, found
        names = [item.variable for item in found.deviations]
        assert names == ["above", "moved[0]", "moved[1]"]
        with zipfile.ZipFile(path) as archive:
            _, columns = read_table(RESULTS, archive.read(RESULTS))
        assert set(columns["above"]) == {0.0, 1.0}
        assert columns["moved[1]"][-1] == pytest.approx(8.0)


def test_long_runs_have_a_thousand_rows(tmp_path):
    path = plant().export_fmu(
        tmp_path / "p.fmu", reference=Experiment(until=2.5, name="driven")
    )  # fmt: skip
    with zipfile.ZipFile(path) as archive:
        times, _ = read_table(RESULTS, archive.read(RESULTS))
    assert times.size <= 1001 and (times[0], times[-1]) == (0.0, 2.5)
    assert check_reference(path)[0].passed


def test_experiments_that_cannot_run_are_refused(tmp_path):
    for wrong, message in (
        (Experiment(until=1.0, inputs="missing.csv"), "needs `missing.csv`: No such file"),
        (Experiment(until=-1.0), "the reference experiment `reference` failed"),
        (Experiment(until=1.0, parameters={"nothing": 1.0}), "has no variable `nothing`"),
    ):
        with pytest.raises(FmuError, match=message):
            plant().export_fmu(tmp_path / "p.fmu", reference=wrong)
        assert not (tmp_path / "p.fmu").exists()


def test_an_fmu_without_experiments(tmp_path):
    path = plant().export_fmu(tmp_path / "p.fmu")
    with pytest.raises(FmuError, match=r"p\.fmu has no reference experiments"):
        check_reference(path)


def test_a_run_that_fails_is_reported(tmp_path, torque):
    """An experiment without results, beside one that passes."""
    path = make(tmp_path / "plant.fmu", torque)
    wrong = replace(
        path,
        tmp_path / "wrong.fmu",
        ("</Experiments>", '<Experiment name="bare" stopTime="0.1"/></Experiments>'),
        name=f"{FOLDER}/experiments.exp",
    )
    good, bare = check_reference(wrong)
    assert good.passed and not bare.passed
    assert bare.problem == "it has no reference results"


def numbers(*values):
    return np.array(values, dtype=float)


def test_the_comparison():
    own = {"y": (numbers(0, 1, 2), True), "n": (numbers(0, 0, 1), False)}
    at = numbers(0, 1, 2)
    (found,) = compare(numbers(0.5, 1.5), {"y": numbers(0.5, 1.4)}, at, own, tolerance=0.05)
    assert found.largest == pytest.approx(0.1) and found.time == 1.5  # interpolated: 1.5
    assert found.allowed == pytest.approx(0.07) and not found.passed
    # A jump in the reference, and a discrete value that changes between two steps.
    for given in (numbers(0, 0, 1), numbers(0, 1, 1)):
        (found,) = compare(numbers(0, 1.5, 2), {"n": given}, at, own, tolerance=1e-9)
        assert found.passed
    (found,) = compare(numbers(0, 1, 1, 2), {"y": numbers(0, 0.5, 3, 2)}, at, own, tolerance=1e-9)
    assert found.passed
    # Zero throughout: the tolerance is absolute.
    own["z"] = numbers(0, 1e-4, 0), True
    (found,) = compare(at, {"z": numbers(0, 0, 0)}, at, own, tolerance=1e-3)
    assert found.passed
    # A NaN never passes.
    own["z"] = numbers(0, np.nan, 0), True
    (found,) = compare(at, {"z": numbers(0, 0, 0)}, at, own, tolerance=1e-3)
    assert not found.passed


def biella(*arguments):
    command = [sys.executable, "-m", "biella", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_the_command(tmp_path, torque):
    path = make(tmp_path / "plant.fmu", torque)
    done = biella("validate", "--reference", path)
    assert done.returncode == 0, done.stderr
    assert "driven" in done.stdout and "no problems" in done.stdout
    wrong = replace(path, tmp_path / "wrong.fmu", ('"0.3"', '"0.31"'),
                    name=f"{FOLDER}/01-driven-parameters.ssv")  # fmt: skip
    done = biella("validate", "--reference", "--json", wrong)
    assert done.returncode == 1
    assert "1 reference experiment of" in done.stderr
    (found,) = json.loads(done.stdout)["reference"]
    assert not found["passed"] and found["outputs"][0]["name"] == "angle"
    assert biella("validate", wrong).returncode == 0  # the file itself is valid
    assert biella("validate", "--reference", "--tolerance", "0.5", wrong).returncode == 0
    assert biella("validate", "--tolerance", "0.5", wrong).returncode == 1


def test_an_export_from_the_shell(tmp_path, torque):
    file = tmp_path / "model.py"
    file.write_text(
        "from biella import Diagram\nfrom biella.blocks import Gain\n\n\ndef diagram():\n"
        "    d = Diagram('m', step=0.01)\n    g = d.add(Gain(2.0), name='g')\n"
        "    d.connect(d.input('torque'), g)\n    d.output('y', g)\n    return d\n"
    )
    target = tmp_path / "m.fmu"
    done = biella("export", file, "-o", target, "--reference", 0.3, "--reference-input", torque)
    assert done.returncode == 0, done.stderr
    assert check_reference(target)[0].passed
    assert MANIFEST in zipfile.ZipFile(target).namelist()
    assert biella("export", file, "-o", target, "--reference-input", torque).returncode == 1
