"""Stiff problems with `radau5` under error control, against published and independent solutions.

The published ones are of the Test Set for IVP Solvers (F. Mazzia, C. Magherini, Bari, release 2.4):
its reference solutions were computed with RADAU5 at a tolerance of 1e-18. Each problem is built
of the blocks that a user would take, not of one formula (`benchmarks/solvers.py` does that).

The error at the end is relative, with a floor for small values. It may be 100 times the tolerance:
the tolerance is that of the local error, and some ten to thousand steps are taken.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from vita_cards import make_cards

from biella import BiellaWarning, Diagram, simulate
from biella.blocks import (
    Constant,
    Expression,
    Gain,
    Integrator,
    Product,
    StateSpace,
    Step,
    Sum,
    TransferFunction,
)
from biella.blocks.authoring import Port
from biella.blocks.multibody import Input

pytestmark = pytest.mark.engine

ALLOWED = 100.0
"""Error at the end, in units of the tolerance."""
TOLERANCES = (1e-4, 1e-6, 1e-8)
Array = NDArray[np.float64]


def error_of(found: Array, reference: list[float], floor: float) -> float:
    expected = np.array(reference)
    return float((np.abs(np.ravel(found) - expected) / (np.abs(expected) + floor)).max())


def van_der_pol(mu: float, start: float, step: float, tolerance: float, floor: float) -> Diagram:
    """x'' = µ (1 - x²) x' - x: two integrators, a formula for the damping, a product, a sum."""
    d = Diagram(
        step=step, solver="radau5", tolerance=(tolerance, floor * tolerance), max_steps=100_000
    )
    x, v = d.add(Integrator(start), "x"), d.add(Integrator(0.0), "v")
    damping = d.add(Expression("mu * (1 - x**2)", inputs=["x"], parameters={"mu": mu}), "damping")
    force, rest = d.add(Product("**"), "force"), d.add(Sum("+-"), "rest")
    for source, target in (
        (v, x),
        (x, damping),
        (damping, force["u1"]),
        (v, force["u2"]),
        (force, rest["u1"]),
        (x, rest["u2"]),
        (rest, v),
    ):
        d.connect(source, target)
    return d


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_van_der_pol_with_a_parameter_of_1000(tolerance):
    """Published for t = 2000; recorded every 100 s, so that steps cross ticks."""
    result = simulate(van_der_pol(1e3, 2.0, 100.0, tolerance, 1e-6), 2000.0)
    end = np.array([result["x"][-1], result["v"][-1]])
    reference = [0.1706167732170469e1, -0.8928097010248125e-3]
    assert error_of(end, reference, 1e-6) < ALLOWED * tolerance


def test_van_der_pol_with_a_parameter_of_a_million():
    """After two jumps x lies on the slow branch, where ln x - x²/2 grows with t/µ.

    The time from x = 2 over both jumps to x = 2 is µ (3 - 2 ln 2 + 7.01432 µ^(-4/3)), up to terms
    that are smaller than 1e-10 µ (A. A. Dorodnitsyn, 1947); x starts 1e-8 below that cycle. CVODE
    at 1e-12 gives 1.70554622. The jumps take 1e-12 of the time: a tolerance below 1e-7 asks for
    steps that a double cannot count.
    """
    mu, tolerance = 1e6, 1e-6
    result = simulate(van_der_pol(mu, 2.0, 2 * mu, tolerance, 1e-9), 2 * mu)
    x, v = result["x"][-1], result["v"][-1]
    period = 3 - 2 * math.log(2) + 7.01432 * mu ** (-4 / 3)
    expected = brentq(
        lambda x: math.log(x / 2) - (x**2 - 4) / 2 - (2 - period), 1.1, 2.0, xtol=1e-14
    )
    assert x == pytest.approx(expected, rel=ALLOWED * tolerance)
    assert x == pytest.approx(1.70554622, rel=ALLOWED * tolerance)
    assert mu * v == pytest.approx(x / (1 - x**2), rel=ALLOWED * tolerance)


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_robertson(tolerance):
    """Three species, three reactions, to t = 10¹¹ s; their sum stays 1."""
    floor = 1e-8
    d = Diagram(step=1e11, solver="radau5", tolerance=(tolerance, floor * tolerance))
    a, b, c = (d.add(Integrator(start), name) for name, start in (("a", 1.0), ("b", 0), ("c", 0)))
    slow, fast = d.add(Gain(0.04), "slow"), d.add(Expression("3e7 * b**2"), "fast")
    medium = d.add(Expression("1e4 * b * c"), "medium")
    d.connect(a, slow)
    d.connect(b, fast["b"])
    d.connect(b, medium["b"])
    d.connect(c, medium["c"])
    da, db = d.add(Sum("-+"), "da"), d.add(Sum("+--"), "db")
    for source, target in (
        (slow, da["u1"]),
        (medium, da["u2"]),
        (da, a),
        (slow, db["u1"]),
        (medium, db["u2"]),
        (fast, db["u3"]),
        (db, b),
        (fast, c),
    ):
        d.connect(source, target)
    result = simulate(d, 1e11)
    end = np.array([result[name][-1] for name in "abc"])
    reference = [0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050]
    assert error_of(end, reference, floor) < ALLOWED * tolerance
    assert end.sum() == pytest.approx(1.0, abs=ALLOWED * tolerance)


HIRES_LINEAR = np.array(
    [
        [-1.71, 0.43, 8.32, 0, 0, 0, 0, 0],
        [1.71, -8.75, 0, 0, 0, 0, 0, 0],
        [0, 0, -10.03, 0.43, 0.035, 0, 0, 0],
        [0, 8.32, 1.71, -1.12, 0, 0, 0, 0],
        [0, 0, 0, 0, -1.745, 0.43, 0.43, 0],
        [0, 0, 0, 0.69, 1.71, -0.43, 0.69, 0],
        [0, 0, 0, 0, 0, 0, -1.81, 0],
        [0, 0, 0, 0, 0, 0, 1.81, 0],
    ]
)
HIRES_REFERENCE = [
    0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2,
    0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2,
]  # fmt: skip


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_hires(tolerance):
    """The linear part is a StateSpace, driven by one reaction and a constant inflow."""
    d = Diagram(step=321.8122, solver="radau5", tolerance=(tolerance, 1e-3 * tolerance))
    drive = np.zeros((8, 1))
    drive[[5, 6, 7], 0] = -1, 1, -1
    inflow = np.zeros((8, 1))
    inflow[0, 0] = 1
    plant = d.add(
        StateSpace(
            HIRES_LINEAR,
            np.hstack([drive, inflow]),
            np.eye(8),
            np.zeros((8, 2)),
            initial=[1, 0, 0, 0, 0, 0, 0, 0.0057],
        ),
        "plant",
    )
    reaction = d.add(Expression(["280 * x[5] * x[7]", "0.0007"]), "reaction")
    d.connect(plant, reaction)
    d.connect(reaction, plant)
    end = simulate(d, 321.8122)["plant"][-1]
    assert error_of(end, HIRES_REFERENCE, 1e-3) < ALLOWED * tolerance


RATES = [
    ".35 * y[0]", "26.6 * y[1] * y[3]", "1.23e4 * y[4] * y[1]", ".86e-3 * y[6]", ".82e-3 * y[6]",
    "1.5e4 * y[6] * y[5]", ".13e-3 * y[8]", "2.4e4 * y[8] * y[5]", "1.65e4 * y[10] * y[1]",
    "9e3 * y[10] * y[0]", ".022 * y[12]", "1.2e4 * y[9] * y[1]", "1.88 * y[13]",
    "1.63e4 * y[0] * y[5]", "4.8e6 * y[2]", ".35e-3 * y[3]", ".0175 * y[3]", "1e8 * y[15]",
    ".444e12 * y[15]", "1.24e3 * y[16] * y[5]", "2.1 * y[18]", "5.78 * y[18]",
    ".0474 * y[0] * y[3]", "1.78e3 * y[18] * y[0]", "3.12 * y[19]",
]  # fmt: skip
REACTIONS = [
    "NO2 > NO O3P", "NO O3 > NO2", "HO2 NO > NO2 OH", "HCHO > HO2 HO2 CO", "HCHO > CO",
    "HCHO OH > HO2 CO", "ALD > MEO2 HO2 CO", "ALD OH > C2O3", "C2O3 NO > NO2 MEO2 CO2",
    "C2O3 NO2 > PAN", "PAN > C2O3 NO2", "MEO2 NO > CH3O NO2", "CH3O > HCHO HO2", "NO2 OH > HNO3",
    "O3P > O3", "O3 > O1D", "O3 > O3P", "O1D > OH OH", "O1D > O3P", "SO2 OH > SO4 HO2",
    "NO3 > NO", "NO3 > NO2 O3P", "NO2 O3 > NO3", "NO3 NO2 > N2O5", "N2O5 > NO3 NO2",
]  # fmt: skip
SPECIES = [
    "NO2", "NO", "O3P", "O3", "HO2", "OH", "HCHO", "CO", "ALD", "MEO2", "C2O3", "CO2", "PAN",
    "CH3O", "HNO3", "O1D", "SO2", "SO4", "NO3", "N2O5",
]  # fmt: skip
POLLUTION_START = dict(NO=0.2, O3=0.04, HCHO=0.1, CO=0.3, ALD=0.01, SO2=0.007)
POLLUTION_REFERENCE = [
    0.5646255480022769e-1, 0.1342484130422339, 0.4139734331099427e-8, 0.5523140207484359e-2,
    0.2018977262302196e-6, 0.1464541863493966e-6, 0.7784249118997964e-1, 0.3245075353396018,
    0.7494013383880406e-2, 0.1622293157301561e-7, 0.1135863833257075e-7, 0.2230505975721359e-2,
    0.2087162882798630e-3, 0.1396921016840158e-4, 0.8964884856898295e-2, 0.4352846369330103e-17,
    0.6899219696263405e-2, 0.1007803037365946e-3, 0.1772146513969984e-5, 0.5682943292316392e-4,
]  # fmt: skip


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_pollution(tolerance):
    """20 species and 25 reactions: rates from a formula, balances from the table of reactions."""
    balance = np.zeros((20, 25))
    for k, reaction in enumerate(REACTIONS):
        taken, given = (side.split() for side in reaction.split(">"))
        for names, sign in ((taken, -1), (given, 1)):
            for name in names:
                balance[SPECIES.index(name), k] += sign
    d = Diagram(step=60.0, solver="radau5", tolerance=(tolerance, 1e-3 * tolerance))
    y = d.add(Integrator([POLLUTION_START.get(name, 0.0) for name in SPECIES]), "y")
    rates, sums = d.add(Expression(RATES), "rates"), d.add(Gain(balance), "sums")
    d.chain(y, rates, sums, y)
    end = simulate(d, 60.0)["y"][-1]
    assert error_of(end, POLLUTION_REFERENCE, 1e-3) < ALLOWED * tolerance


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_a_transfer_function_with_poles_at_1_and_100000(tolerance):
    """Response to a step at 0.3 s, which is not a tick, in closed form at every tick.

    Between steps the solution is interpolated with order 4; the allowed error is the same.
    """
    d = Diagram(step=0.25, solver="radau5", tolerance=(tolerance, 1e-3 * tolerance))
    step = d.add(Step(at=0.3, to=2.0), "step")
    plant = d.add(TransferFunction([1e5], [1.0, 1e5 + 1, 1e5]), "plant")
    d.connect(step, plant)
    result = simulate(d, 5.0)
    t = np.maximum(result.t - 0.3, 0.0)
    expected = 2 * (1 - (1e5 * np.exp(-t) - np.exp(-1e5 * t)) / (1e5 - 1))
    assert result["plant"] == pytest.approx(expected, rel=ALLOWED * tolerance, abs=1e-12)


def crank_reference(start: float, times: Array) -> Array:
    """Angles of the crank of Vita's cards, from the equation of one coordinate.

    M(θ) θ'' + ½ M'(θ) θ'² = Q: torque, damper and spring by virtual work.
    """
    r, rod = 0.25, 0.5

    def reach(a):
        return r * np.cos(a) + np.sqrt(rod**2 - (r * np.sin(a)) ** 2)

    def derivative(f, a):
        return np.imag(f(a + 1e-30j)) / 1e-30

    def inertia(a):
        root = np.sqrt(rod**2 - (r * np.sin(a)) ** 2)
        turn = -r * np.cos(a) / root
        slide = -r * np.sin(a) - r**2 * np.sin(a) * np.cos(a) / root
        x, y = 0.5 * (-r * np.sin(a) + slide), 0.5 * r * np.cos(a)
        return (
            1e-3
            + 0.2 * 0.125**2
            + 0.4 * (x * x + y * y)
            + 8e-3 * turn * turn
            + 3.22 * slide * slide
        )

    def slope(t, state, is_driven):
        a, w = state
        torque = 50 - 8 * w if is_driven else -2 * abs(0.5 * np.sin(a / 2) * w) * w
        stretch = reach(a) - 0.04 - 0.661
        torque -= 10 * abs(stretch) * stretch * derivative(reach, a)
        return [w, (torque - 0.5 * derivative(inertia, a) * w * w) / inertia(a)]

    angles, state = [], [start, 0.0]
    for begin, end, is_driven in ((0.0, 4.0, True), (4.0, times[-1], False)):
        chosen = times[(times >= begin) & (times <= end)]
        chosen = chosen[chosen > begin] if begin else chosen
        solved = solve_ivp(
            slope, (begin, end), state, method="Radau", args=(is_driven,), rtol=1e-11, atol=1e-13,
            t_eval=chosen,
        )  # fmt: skip
        angles.append(solved.y[0])
        state = solved.y[:, -1]
    return np.concatenate(angles)


def test_vitas_sample_cards_with_their_switched_torque():
    """[V 4.2], cards Force and SPDamp: 50 N m until t = 4 s; a damper on the crank of 8 N m s until
    then, of 2 |de0/dt| afterward; a spring whose stiffness is 10 |x - 0.661|.

    The damper makes it stiff: 8 N m s on 4e-3 kg m² where the piston is at rest. e0 is cos(θ/2).
    Angles within 100 tolerances of the equation of one coordinate, through the switch.
    """
    tolerance = 1e-8
    s, crank, piston = make_cards("sample cards")
    s.torque("motor", crank.marker("motor"), (0, 0, Input("torque")))
    s.force("spring", piston.marker("spring"), (Input("force"), 0, 0))

    d = Diagram(step=0.01, solver="radau5", tolerance=tolerance)
    outputs = ["main.angle", "main.speed", "piston.position", "closure"]
    plant = d.add(s.block(outputs=outputs), "plant")
    motor = d.add(
        Expression(
            "where(t < 4, 50 - 8 * speed, -abs(sin(angle / 2) * speed) * speed)",
            inputs=["angle", "speed"],
        ),
        "motor",
    )
    spring = d.add(
        Expression("-10 * abs(x[0] - 0.661) * (x[0] - 0.661)", inputs=[Port("x", width=3)]),
        "spring",
    )
    for source, target in (
        (plant["main.angle"], motor["angle"]),
        (plant["main.speed"], motor["speed"]),
        (plant["piston.position"], spring["x"]),
        (motor, plant["torque"]),
        (spring, plant["force"]),
    ):
        d.connect(source, target)
    with pytest.warns(BiellaWarning, match="is moved by"):
        result = simulate(d, 6.0)
    angle = result["plant.main.angle"]
    assert result["plant.closure"].max() < 1e-10
    assert np.abs(angle - crank_reference(angle[0], result.t)).max() < ALLOWED * tolerance


def test_a_diffusion_line_of_2000_states():
    """dx_k/dt = κ (x_(k-1) - 2 x_k + x_(k+1)) between zeros: the first and the third mode decay.

    In space it is exact: mode m decays as exp(-4 κ sin²(π m / 2 (n + 1)) t). The fastest of the
    2000 states decays 1.6 million times faster than the slowest. A full Jacobian would take 128 MB
    and 2000 evaluations, the sparse one less than 2 MB with all of the solver's memory, and 3.
    """
    n, tolerance = 2000, 1e-6
    kappa = ((n + 1) / np.pi) ** 2
    places = np.arange(1, n + 1) / (n + 1)

    def exact(t: float) -> Array:
        decay = {m: 4 * kappa * np.sin(np.pi * m / (2 * (n + 1))) ** 2 for m in (1, 3)}
        return np.sin(np.pi * places) * np.exp(-decay[1] * t) + 0.5 * np.sin(
            3 * np.pi * places
        ) * np.exp(-decay[3] * t)

    d = Diagram(step=0.1, solver="radau5", tolerance=tolerance)
    border = d.add(Constant(0.0), "border")
    states = [d.add(Integrator(value), f"x{k}") for k, value in enumerate(exact(0.0))]
    for k, x in enumerate(states):
        flow = d.add(
            Expression(
                "kappa * (left - 2 * x + right)",
                inputs=["left", "x", "right"],
                parameters={"kappa": kappa},
            ),
            f"flow{k}",
        )
        d.connect(states[k - 1] if k else border, flow["left"])
        d.connect(x, flow["x"])
        d.connect(states[k + 1] if k + 1 < n else border, flow["right"])
        d.connect(flow, x)
    instance = d.compile().instantiate()
    instance.run(10)
    assert np.abs(instance.states - exact(1.0)).max() < ALLOWED * tolerance
    assert instance.values.nbytes < 2e6
