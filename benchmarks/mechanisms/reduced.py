"""The motions of `multibody.py` in the fewest coordinates, solved to round-off by scipy.

A mechanism with one degree of freedom s and places r_i(s), angles φ_i(s) has

    m(s) = Σ m_i r_i'·r_i' + J_i φ_i'²          m s̈ + ½ m' ṡ² = Q - Σ m_i g·(-r_i')
    ½ m' = Σ m_i r_i'·r_i'' + J_i φ_i' φ_i''

where ' is d/ds and Q the drive. Slider-crank, s = θ from x toward z, crank a and rod b long, the
rod at φ below the x axis:

    b sin φ = a sin θ     φ' = a cos θ / (b cos φ)     φ'' = (b sin φ φ'² - a sin θ) / (b cos φ)

The row of n four-bars, s = θ from the vertical toward x: n + 1 bars turn about their feet and n
couplers move as their tops do, so that m = (n + 1) / 3 + n is constant and

    m θ̈ = g ((n + 1) / 2 + n) sin θ

The pendulum, s = θ from the horizontal: θ̈ = -g cos θ.

Two works have more coordinates. The chain of n rods of length 1 and mass 1, angles θ_i from the
vertical that hangs down; a_ij is the number of rods below the lower of rods i and j, plus 1/2, or
plus 1/3 if i = j, and b_i the number below rod i, plus 1/2:

    Σ_j a_ij (cos(θ_i - θ_j) θ̈_j + sin(θ_i - θ_j) θ̇_j²) = -g b_i sin θ_i

The free body: Euler's equations J ω̇ = J ω × ω in its axes, and q̇ = ½ q ω of its quaternion.

Also the accelerations of the tree robot by projection: with V = J v the velocities of all links at
their centers and F what acts there, gyroscopic torques included, Jᵀ (M (J v̇ + J̇ v) - F) = Q.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.integrate import solve_ivp

from mechanisms.plants import STEP, Array, Link, Plant, place, rotation_of

TOLERANCE = 1e-12

Acceleration = Callable[[float, float], float]


def _solve(acceleration: Acceleration, start: tuple[float, float], seconds: float) -> float:
    solution = solve_ivp(
        lambda t, y: (y[1], acceleration(y[0], y[1])),
        (0.0, seconds),
        start,
        method="DOP853",
        rtol=TOLERANCE,
        atol=TOLERANCE,
    )
    return float(solution.y[0, -1])


def _solve_rk4(acceleration: Acceleration, start: tuple[float, float], seconds: float) -> float:
    """Solve by the classical method at `STEP`, for what its error alone does."""
    s, v = start
    h = STEP
    for _ in range(round(seconds / h)):
        a1 = acceleration(s, v)
        v2 = v + h / 2 * a1
        a2 = acceleration(s + h / 2 * v, v2)
        v3 = v + h / 2 * a2
        a3 = acceleration(s + h / 2 * v2, v3)
        v4 = v + h * a3
        a4 = acceleration(s + h * v3, v4)
        s, v = s + h / 6 * (v + 2 * (v2 + v3) + v4), v + h / 6 * (a1 + 2 * (a2 + a3) + a4)
    return s


def slider_crank_points(plant: Plant, seconds: float, rk4: bool = False) -> dict[str, list[float]]:
    """Give the centers of crank, rod and slider after a time."""
    crank, rod, slider = plant.bodies
    g = -plant.gravity[2]
    a = 2 * float(np.hypot(crank.position[0], crank.position[2]))
    b = float(np.hypot(slider.position[0] - 2 * crank.position[0], 2 * crank.position[2]))

    def acceleration(angle: float, rate: float) -> float:
        sin, cos = np.sin(angle), np.cos(angle)
        sin_rod = a * sin / b
        cos_rod = np.sqrt(1 - sin_rod**2)
        d = a * cos / (b * cos_rod)
        dd = (b * sin_rod * d**2 - a * sin) / (b * cos_rod)
        # Along the rod from its pin: (cos φ, -sin φ) and its derivatives.
        rod1 = np.array([-sin_rod * d, -cos_rod * d])
        rod2 = np.array([-cos_rod * d**2 - sin_rod * dd, sin_rod * d**2 - cos_rod * dd])
        pin1, pin2 = a * np.array([-sin, cos]), a * np.array([-cos, -sin])
        first = (pin1 / 2, pin1 + b / 2 * rod1, pin1 + b * rod1)
        second = (pin2 / 2, pin2 + b / 2 * rod2, pin2 + b * rod2)
        masses = (crank.mass, rod.mass, slider.mass)
        m = crank.inertia[1] + rod.inertia[1] * d**2
        half = rod.inertia[1] * d * dd
        push = -plant.torque  # about y, which turns z toward x
        for mass, r1, r2 in zip(masses, first, second, strict=True):
            m += mass * (r1 @ r1)
            half += mass * (r1 @ r2)
            push -= mass * g * r1[1]
        return float((push - half * rate**2) / m)

    angle = (_solve_rk4 if rk4 else _solve)(acceleration, (np.pi / 4, 0.0), seconds)
    pin = a * np.array([np.cos(angle), 0.0, np.sin(angle)])
    sin_rod = pin[2] / b
    along = b * np.array([np.sqrt(1 - sin_rod**2), 0.0, -sin_rod])
    return {
        "crank": list(map(float, pin / 2)),
        "rod": list(map(float, pin + along / 2)),
        "slider": list(map(float, pin + along)),
    }


def four_bars_points(n: int, seconds: float, rk4: bool = False) -> dict[str, list[float]]:
    """Give the tops of the first and the last bar after a time."""
    rate = 9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    solve = _solve_rk4 if rk4 else _solve
    angle = solve(lambda s, _: rate * float(np.sin(s)), (0.0, 1.0), seconds)
    top: Array = np.array([np.sin(angle), np.cos(angle), 0.0])
    return {
        "first top": list(map(float, top)),
        "last top": list(map(float, top + np.array([n, 0.0, 0.0]))),
    }


def pendulum_points(seconds: float, rk4: bool = False) -> dict[str, list[float]]:
    """Give the place of the mass after a time."""
    solve = _solve_rk4 if rk4 else _solve
    angle = solve(lambda s, _: -9.81 * float(np.cos(s)), (0.0, 0.0), seconds)
    return {"bob": [float(np.cos(angle)), float(np.sin(angle)), 0.0]}


def _integrate(rates: Callable[[float, Array], Array], start: Array, seconds: float) -> Array:
    solution = solve_ivp(
        rates, (0.0, seconds), start, method="DOP853", rtol=TOLERANCE, atol=TOLERANCE
    )
    end: Array = solution.y[:, -1]
    return end


def chain_points(n: int, seconds: float) -> dict[str, list[float]]:
    """Give the center of the middle rod and the tip of the last after a time."""
    rods = np.arange(n)
    below = n - 1.0 - np.maximum(rods[:, None], rods[None, :])
    a = below + np.where(np.eye(n) > 0, 1 / 3, 1 / 2)
    b = n - 1.0 - rods + 1 / 2

    def rates(_: float, y: Array) -> Array:
        angles, speeds = y[:n], y[n:]
        apart = angles[:, None] - angles[None, :]
        push = -9.81 * b * np.sin(angles) - (a * np.sin(apart)) @ speeds**2
        return np.concatenate([speeds, np.linalg.solve(a * np.cos(apart), push)])

    angles = _integrate(rates, np.concatenate([np.zeros(n), np.ones(n)]), seconds)[:n]
    along = np.column_stack([np.sin(angles), -np.cos(angles), np.zeros(n)])
    middle = along[: n // 2].sum(axis=0) + along[n // 2] / 2
    return {"middle": middle.tolist(), "tip": along.sum(axis=0).tolist()}


def tumbler_points(plant: Plant, seconds: float) -> dict[str, list[float]]:
    """Give the named points of the free body, which turns about its center, after a time."""
    (body,) = plant.bodies
    J = np.array(body.inertia)

    def rates(_: float, y: Array) -> Array:
        spin, (e0, e) = y[:3], (y[3], y[4:])
        turned = np.array([-e @ spin, *(e0 * spin + np.cross(e, spin))]) / 2
        return np.concatenate([np.cross(J * spin, spin) / J, turned])

    start = np.array([*body.angular_velocity, 1.0, 0.0, 0.0, 0.0])
    quaternion = _integrate(rates, start, seconds)[3:]
    R = rotation_of(quaternion / np.linalg.norm(quaternion))
    return {name: (R @ np.array(local)).tolist() for name, (_, local) in plant.points.items()}


def reference(work: str, plant: Plant, seconds: float) -> dict[str, list[float]]:
    """Give the named points of a plant after a time."""
    if work.startswith("chain_"):
        return chain_points(len(plant.bodies), seconds)
    if work == "tumbler":
        return tumbler_points(plant, seconds)
    return _one_coordinate(work, plant, seconds, rk4=False)


def rk4_reference(work: str, plant: Plant, seconds: float) -> dict[str, list[float]] | None:
    """Give what RK4 at `STEP` makes of the equation of one coordinate; none if there are more."""
    if work == "tumbler" or work.startswith("chain_"):
        return None
    return _one_coordinate(work, plant, seconds, rk4=True)


def _one_coordinate(work: str, plant: Plant, seconds: float, rk4: bool) -> dict[str, list[float]]:
    if work == "slider_crank":
        return slider_crank_points(plant, seconds, rk4)
    if work == "pendulum":
        return pendulum_points(seconds, rk4)
    return four_bars_points(len(plant.bodies) // 2, seconds, rk4)


def _move(links: list[Link], dt: float, speeds: Array | None = None) -> list[Link]:
    """Let all joints go on at their speeds for a time; then set other speeds, if given."""
    moved, at = [], 0
    for link in links:
        if link.kind == "spherical":
            angle = float(np.linalg.norm(link.v))
            half = angle * dt / 2
            w, xyz = np.cos(half), np.sin(half) * link.v / angle
            a, b = link.q[0], link.q[1:]
            q = np.array([a * w - b @ xyz, *(a * xyz + w * b + np.cross(b, xyz))])
        else:
            q = link.q + dt * link.v
        v = link.v if speeds is None else speeds[at : at + len(link.v)]
        at += len(link.v)
        moved.append(replace(link, q=q, v=v))
    return moved


def tree_accelerations(links: list[Link]) -> dict[str, list[float]]:
    """Give linear and angular acceleration of every link's frame, in the world."""

    def velocities(moved: list[Link], central: bool) -> Array:
        found = []
        for link, placed in zip(moved, place(moved), strict=True):
            arm = placed.rotation @ link.com * central
            v = placed.velocity + np.cross(placed.angular_velocity, arm)
            found.append(np.concatenate([v, placed.angular_velocity]))
        return np.concatenate(found)

    def jacobian(central: bool) -> Array:
        return np.column_stack(
            [velocities(_move(links, 0.0, unit), central) for unit in np.eye(count)]
        )

    def bias(central: bool) -> Array:
        # dV/dt at constant joint speeds: four points, error of order h^4.
        h = 3e-4
        ahead, behind = (
            [velocities(_move(links, s * k * h), central) for k in (1, 2)] for s in (1, -1)
        )
        return (8 * (ahead[0] - behind[0]) - (ahead[1] - behind[1])) / (12 * h)

    count = sum(len(link.v) for link in links)
    size = 6 * len(links)
    M, F = np.zeros((size, size)), np.zeros(size)
    for number, (link, placed) in enumerate(zip(links, place(links), strict=True)):
        R, w, at = placed.rotation, placed.angular_velocity, 6 * number
        inertia = R @ link.inertia @ R.T
        M[at : at + 3, at : at + 3] = link.mass * np.eye(3)
        M[at + 3 : at + 6, at + 3 : at + 6] = inertia
        F[at : at + 3] = link.force + link.mass * np.array([0.0, 0.0, -9.80665])
        F[at + 3 : at + 6] = (
            link.torque - np.cross(R @ link.com, link.force) - np.cross(w, inertia @ w)
        )
    loads = np.concatenate(
        [np.zeros(3) if link.load is None else np.array([link.load]) for link in links]
    )
    J = jacobian(True)
    rates = np.linalg.solve(J.T @ M @ J, loads + J.T @ (F - M @ bias(True)))
    a = jacobian(False) @ rates + bias(False)
    return {link.name: [float(x) for x in a[6 * i : 6 * i + 6]] for i, link in enumerate(links)}
