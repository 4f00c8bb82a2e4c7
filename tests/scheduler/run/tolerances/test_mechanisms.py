"""Tolerances of mechanisms: published sets of a Cardan joint with play, and a slider-crank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella import Diagram, System
from biella.blocks.multibody.dual import Dual, PlayRCCC, clearance_screw
from biella.tolerances import Free, Normal, sweep_tolerances, tolerance_study

DEGREE = np.pi / 180
ANGLES = np.array([0.3, 1.0, 2.0])


def cardan_variables():
    """Vita's Table 7.1: each tolerance is six standard deviations."""
    found: dict[str, Any] = {}
    for k in (1, 2, 3, 4):
        angle = 135.0 if k == 4 else 90.0
        found[f"alpha{k}"] = Normal(angle * DEGREE, 0.1 * DEGREE, sigmas=6)
        found[f"a{k}"] = Normal(0.0, 0.1, sigmas=6)
        found[f"R{k}"] = Normal(1.0, 0.1, sigmas=6)
    for k in (2, 3, 4):
        found[f"H{k}"] = Normal(1.0, 0.1, sigmas=6)
        found[f"dr{k}"] = Normal(0.0, 0.06, sigmas=6, folded=True)
        found[f"xi{k}"] = found[f"beta{k}"] = Free(0.0, 2 * np.pi)
    return found


def cardan(x):
    def of(name, joints):
        return np.stack([x[f"{name}{k}"] for k in joints], axis=-1)[..., None, :]

    all_joints, later = (1, 2, 3, 4), (2, 3, 4)
    screws = clearance_screw(*(of(name, later) for name in ("xi", "beta", "dr", "H")))
    twists = Dual(of("alpha", all_joints), of("a", all_joints))
    found = PlayRCCC(twists, of("R", all_joints), screws).coordinates(ANGLES)
    return {"theta": found.real[..., 1:], "s": found.dual[..., 1:]}


@pytest.fixture(scope="module")
def study():
    return tolerance_study(cardan, cardan_variables(), 4000, vectorized=True, directions=400)


def test_a_cardan_joint_with_play_has_the_published_deviations(study):
    """Of 400 sets: their standard error is 3.5 %, and 5 % with the tails of products; ±12 %."""
    published = {
        "theta": [[0.0214, 0.0154, 0.0222], [0.0160, 0.0146, 0.0150], [0.0153, 0.0145, 0.0144]],
        "s": [[0.055, 0.036, 0.061], [0.043, 0.036, 0.047], [0.038, 0.035, 0.047]],
    }
    for name, deviation in published.items():
        np.testing.assert_allclose(study[name].deviation, deviation, rtol=0.12)


def test_sensitivities_predict_the_deviations(study):
    """Two estimates of σ: their sampling errors are 1.5 % and about 4 % (400 directions)."""
    for name in study:
        spread = study[name]
        np.testing.assert_allclose(spread.linear_deviation, spread.deviation, rtol=0.1)
        assert (spread.worst_case > spread.root_sum_square).all()


def test_sensitivities_have_the_printed_values(study):
    """∂s_j/∂a_k at θ1 = 1: without play their root mean square is their size."""
    variables = {name: v for name, v in cardan_variables().items() if name[0] == "a"}
    fixed = {name: v.nominal for name, v in cardan_variables().items() if name[0] in "RH"}
    none = {f"{name}{k}": 0.0 for name in ("dr", "xi", "beta") for k in (2, 3, 4)}

    def ideal(x):
        full = np.broadcast_arrays(*x.values(), *(fixed | none).values())
        return cardan(dict(zip([*x, *fixed, *none], full, strict=True)))

    found: Any = tolerance_study(ideal, variables, 2, vectorized=True, difference=0.01)
    expected = {
        3: (-0.696702885, -1.082085882, -0.413412452, -0.376430176),
        1: (-0.266176330, -0.413412452, -1.082085882, -0.985286670),
        2: (0.765150265, 0.0, 0.0, 0.413412452),
    }
    for joint, values in expected.items():
        for k, value in enumerate(values, 1):
            by_length = found["s"].sensitivities[f"a{k}"][1, joint - 1]
            by_angle = found["theta"].sensitivities[f"alpha{k}"][1, joint - 1]
            assert by_length == pytest.approx(value, abs=1e-8)
            assert by_angle == pytest.approx(value, abs=1e-8)


CRANK, ROD = 0.03, 0.11


def slider_crank():
    """A driven crank; its rod and offset are positions of markers."""
    s = System("slider-crank", (0, 0), planar=True)
    crank = s.body("crank", mass=0.2, inertia=1e-5)
    rod = s.body("rod", mass=0.4, inertia=4e-4, position=(CRANK, 0))
    slider = s.body("slider", mass=0.3, inertia=1e-4, position=(CRANK + ROD, 0))
    main = s.revolute("main", s.ground, crank, at=(0, 0))
    s.revolute("pin", crank.marker("pin", (CRANK, 0)), rod.marker("pin", (0, 0)))
    s.revolute("wrist", rod.marker("wrist", (ROD, 0)), slider.marker("wrist", (0, 0)))
    s.prismatic(
        "slide", s.ground.marker("rail", (0, 0), axis=(1, 0)), slider.marker("shoe", axis=(1, 0))
    )
    s.driver("drive", main, "2 * t")
    return s


def test_a_simulated_mechanism_varies_as_its_closed_form():
    """x = r cos θ + √(l² - (r sin θ - e)²) at θ = 1; closed to 1e-10 m."""
    variables = {"r": Normal(CRANK, 2e-4), "l": Normal(ROD, 3e-4), "e": Normal(0.0, 2e-4)}
    d = Diagram("press", step=5e-3)
    d.add(slider_crank().block(outputs=["slider.position"]), "plant")
    limits = {"x": (0.1214, 0.1232)}

    def parameters(x):
        return {
            "plant.crank.pin.location": (x["r"], 0.0),
            "plant.rod.wrist.location": (x["l"], 0.0),
            "plant.ground.rail.location": (0.0, x["e"]),
        }

    found = sweep_tolerances(
        d, 0.5, variables, lambda run: {"x": run["plant.slider.position"][-1, 0]}, 20,
        parameters=parameters, limits=limits, progress=False, seed=3,
    )["x"]  # fmt: skip

    def closed(x):
        height = x["r"] * np.sin(1.0) - x["e"]
        return {"x": x["r"] * np.cos(1.0) + np.sqrt(x["l"] ** 2 - height**2)}

    expected = tolerance_study(closed, variables, 20, limits=limits, seed=3)["x"]
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-10)
    for name, slope in expected.sensitivities.items():
        assert found.sensitivities[name] == pytest.approx(slope, abs=1e-5)
    assert found.worst_case == pytest.approx(expected.worst_case, rel=1e-5)
    assert found.cpk == pytest.approx(expected.cpk, rel=1e-5)
