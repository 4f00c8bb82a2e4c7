"""Equilibrium position, stiffness and damping, and stability threshold of a journal bearing.

All functions evaluate the same C kernel that runs in a diagram.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..._services import find_service
from ...errors import BiellaError

if TYPE_CHECKING:
    from ._bearings import AbstractBearing

Array = npt.NDArray[np.float64]
Load = float | tuple[float, float]

_STEP = 1e-4
"""Step of finite differences, as a fraction of the film thickness."""
_CENTERED = 1e-9
"""Eccentricity below which a journal counts as centered."""
_NEWTON_LIMIT, _HALVINGS = 40, 30
_SPEEDS = 25
"""Number of speeds at which a threshold is searched for, evenly spaced in their logarithm."""


@dataclass(frozen=True, slots=True, eq=False)
class OilEquilibrium:
    """Where a film carries a steady load.

    Attributes
    ----------
    load
        On the journal, x and y in N.
    speed, bush_speed
        Spin in rad/s.
    position
        Position of the journal in the bush, x and y in m.
    eccentricity
        |e| / c.
    attitude
        Angle from the load to the journal's offset in rad, positive in the sense of z.
    sommerfeld
        S = (r / c)² μ N / P with N = |ω_j + ω_b| / 2π and P = W / (2 r B).
    film, pressure, torque, power_loss
        As the block's ports.
    """

    load: Array
    speed: float
    bush_speed: float
    position: Array
    eccentricity: float
    attitude: float
    sommerfeld: float
    film: float
    pressure: float
    torque: float
    power_loss: float


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """A film's linear answer to small motion about an equilibrium: ΔF = -K Δe - C Δė.

    Attributes
    ----------
    stiffness, damping
        K in N/m and C in N s/m: rows are forces along x and y, columns motions.
    equilibrium
        About which.
    """

    stiffness: Array
    damping: Array
    equilibrium: OilEquilibrium

    def along_load(self, clearance: float) -> tuple[Array, Array]:
        """Return K c / W and C c ω / W in axes whose x points along the load.

        Parameters
        ----------
        clearance
            c in m.
        """
        load = self.equilibrium.load
        size = float(np.hypot(*load))
        x = load / size
        turn = np.array([x, [-x[1], x[0]]])
        scale = clearance / size
        omega = abs(self.equilibrium.speed + self.equilibrium.bush_speed)
        return turn @ self.stiffness @ turn.T * scale, turn @ self.damping @ turn.T * scale * omega

    def critical_mass(self) -> float:
        """Return the mass in kg up to which a rigid body on this film is stable; maybe ``inf``.

        On the limit m ẍ + C ẋ + K x = 0 has a root i ν, whose two parts give m ν² and ν².
        """
        (kxx, kxy), (kyx, kyy) = self.stiffness
        (cxx, cxy), (cyx, cyy) = self.damping
        spring = (kxx * cyy + kyy * cxx - kxy * cyx - kyx * cxy) / (cxx + cyy)
        whirl = ((kxx - spring) * (kyy - spring) - kxy * kyx) / (cxx * cyy - cxy * cyx)
        if whirl <= 0:
            return math.inf if spring > 0 else 0.0
        return float(max(spring / whirl, 0.0))

    def whirl_speed(self) -> float:
        """Return ν in rad/s at which a body of the critical mass whirls; NaN if none does."""
        mass = self.critical_mass()
        if not 0 < mass < math.inf:
            return math.nan
        values = np.linalg.eigvals(_state_matrix(self, mass))
        return float(np.abs(values[np.argmax(values.real)].imag))


def _state_matrix(found: Coefficients, mass: float) -> Array:
    zero, one = np.zeros((2, 2)), np.eye(2)
    return np.block([[zero, one], [-found.stiffness / mass, -found.damping / mass]])


class _OilFilm:
    """The block alone, asked again and again."""

    def __init__(self, instance: Any, ends: int) -> None:
        self.instance = instance
        self.ends = ends

    def ask(self, position: Array, velocity: Array, speed: float, bush_speed: float) -> None:
        """Evaluate the film; the solution becomes the initial guess of the next evaluation."""
        self.instance.set("position", np.tile(position, self.ends))
        self.instance.set("velocity", np.tile(velocity, self.ends))
        self.instance.set("journal_speed", speed)
        self.instance.set("bush_speed", bush_speed)
        self.instance.run(1)
        self.instance.evaluate()

    def read(self, port: str) -> Array:
        """Return an output of the block."""
        block = self.instance.plan.blocks[0]
        info = next(p for p in block.outputs if p.path.endswith(f".{port}"))
        values: Array = self.instance.values[info.slot : info.slot + info.width].copy()
        return values

    def force(self, position: Array, velocity: Array, speed: float, bush_speed: float) -> Array:
        """Return the force on the journal."""
        self.ask(position, velocity, speed, bush_speed)
        return self.read("force")


@contextmanager
def open_film(bearing: AbstractBearing) -> Iterator[_OilFilm]:
    """Run a bearing alone, to evaluate its loads."""
    inputs = {port.name for port in bearing.inputs} - {"viscosity"}  # keeps its given value
    with find_service("compile_alone")(bearing, "bearing", inputs).instantiate() as instance:
        yield _OilFilm(instance, bearing.ends)


def _as_load(load: Load) -> Array:
    pair = np.atleast_1d(np.asarray(load, dtype=float))
    if pair.shape == (1,):
        pair = np.array([pair[0], 0.0])
    if pair.shape != (2,) or not np.isfinite(pair).all() or not pair.any():
        raise BiellaError(f"a load is a number or a pair of numbers in N, not zero; got {load!r}.")
    return pair


@dataclass(frozen=True, slots=True)
class _Search:
    """Search for the journal position at which the film carries a load."""

    film: _OilFilm
    clearance: float
    limit: float
    """The thinnest film, in m."""
    load: Array
    size: float
    direction: float
    speed: float
    bush_speed: float
    most: float
    """The largest eccentricity that is still a film in a round bush."""

    def position(self, eccentricity: float, angle: float) -> Array:
        return eccentricity * self.clearance * np.array([math.cos(angle), math.sin(angle)])

    def push(self, eccentricity: float, angle: float) -> tuple[float, float]:
        """Return the log of what the film carries there over the load, and its angle to it."""
        at = self.position(eccentricity, angle)
        fx, fy = -self.film.force(at, np.zeros(2), self.speed, self.bush_speed)
        turned = math.remainder(math.atan2(fy, fx) - self.direction, 2 * math.pi)
        carried = max(math.hypot(fx, fy), 1e-12 * self.size)  # a film may carry nothing
        return math.log(carried / self.size), turned

    def by_size(self, angle: float) -> tuple[float, float]:
        """Find the eccentricity along `angle` that carries as much, then turn it under the load."""
        from scipy.optimize import brentq

        if self.push(self.most, angle)[0] < 0:
            eccentricity = self.most
        else:
            eccentricity = float(
                brentq(lambda e: self.push(e, angle)[0], _CENTERED, self.most, xtol=1e-13)
            )
        return eccentricity, angle - self.push(eccentricity, angle)[1]

    def by_direction(self, angle: float) -> Array | None:
        """Return the place from eccentricity and angle together, for a film that has grooves.

        None if there is none. A film may carry more than the load where it is thickest, which in
        these variables looks like a wrong angle, or may carry the load only beyond its clearance.
        """
        from scipy.optimize import root
        from scipy.special import expit

        if self.push(_CENTERED, angle)[0] > 0:
            return None
        eccentricity, angle = self.by_size(angle)
        start = min(eccentricity, 0.95 * self.most)

        def place(guess: Array) -> tuple[float, float]:
            return max(self.most * float(expit(guess[0])), _CENTERED), float(guess[1])

        found = root(
            lambda guess: self.push(*place(guess)),
            [math.log(start / (self.most - start)), angle],
            tol=1e-10,
        )
        if not float(np.abs(found.fun).max()) <= 1e-6:
            return None
        at = self.position(*place(found.x))
        self.film.ask(at, np.zeros(2), self.speed, self.bush_speed)
        return at if self.film.read("film")[0] > self.limit else None

    def by_path(self) -> Array:
        """Follow the journal from the center while the load rises to its full value (continuation).

        In x and y, so that neither the center nor the shape of the bush is singular.
        """
        at = np.zeros(2)
        middle = -self.film.force(at, np.zeros(2), self.speed, self.bush_speed)
        part, step = 0.0, 1.0
        while part < 1.0:
            trial = min(part + step, 1.0)
            found = self._carry(middle + trial * (self.load - middle), at)
            if found is None:
                step /= 2.0
                if step >= 1e-4:
                    continue
                raise BiellaError(
                    f"no equilibrium was found for a load of {self.size:.4g} N: on the way to it "
                    f"from a journal in the middle the film carries {100 * part:.3g} % of the "
                    f"change. It may be too weak, or a groove may lie under the load. Use more "
                    f"speed, viscosity or length, or less clearance."
                )
            at, part, step = found, trial, 2.0 * step
        return at

    def _carry(self, load: Array, at: Array) -> Array | None:
        """Find by Newton's method where the film carries a load; None if it does not converge."""
        still = np.zeros(2)

        def residual(place: Array) -> tuple[Array, float]:
            force = self.film.force(place, still, self.speed, self.bush_speed)
            return force + load, float(self.film.read("film")[0]) - self.limit

        off, room = residual(at)
        enough = 1e-9 * max(self.size, float(np.hypot(*load)))
        for _ in range(_NEWTON_LIMIT):
            if float(np.hypot(*off)) <= enough:
                return at
            size = _STEP * (room + self.limit)
            slope = np.empty((2, 2))
            for n in range(2):
                move = size * np.eye(2)[n]
                slope[:, n] = (residual(at + move)[0] - residual(at - move)[0]) / (2.0 * size)
            if not (np.isfinite(slope).all() and abs(np.linalg.det(slope)) > 0.0):
                return None
            step = np.linalg.solve(slope, -off)
            step *= min(1.0, 0.7 * room / float(np.hypot(*step)))
            for _ in range(_HALVINGS):
                ahead, space = residual(at + step)
                if space > 0.0 and float(np.hypot(*ahead)) < float(np.hypot(*off)):
                    break
                step *= 0.5
            else:
                return None
            at, off, room = at + step, ahead, space
        return None


def find_equilibrium(
    bearing: AbstractBearing, load: Load, speed: float, bush_speed: float
) -> OilEquilibrium:
    """Find where a film carries a load; see `AbstractBearing.equilibrium`."""
    pull = _as_load(load)
    size, direction = math.hypot(*pull), math.atan2(pull[1], pull[0])
    spin = speed + bush_speed
    if not (math.isfinite(spin) and spin != 0):
        raise BiellaError(
            f"speeds of {speed!r} and {bush_speed!r} rad/s draw no oil into the wedge: nothing "
            f"carries the load. Their sum must not be zero."
        )
    c = bearing.clearance
    most = 1.0 - max(bearing.film_limit / c * (1.0 + 1e-9), 1e-6)
    with open_film(bearing) as film:
        search = _Search(
            film, c, bearing.film_limit, pull, size, direction, speed, bush_speed, most
        )
        angle = direction + math.copysign(math.pi / 4, spin)
        if bearing.isotropic:
            eccentricity, angle = search.by_size(angle)
            if eccentricity == most:
                carried = size * math.exp(search.push(most, angle)[0])
                raise BiellaError(
                    f"the film carries {carried:.4g} N at its limit of {bearing.film_limit:.3g} m, "
                    f"and the load is {size:.4g} N. Use more speed, viscosity or length, or less "
                    f"clearance."
                )
            position = search.position(eccentricity, angle)
        else:
            found = search.by_direction(angle)
            position = search.by_path() if found is None else found
            eccentricity = float(np.hypot(*position)) / c
            angle = math.atan2(position[1], position[0])
        film.ask(position, np.zeros(2), speed, bush_speed)
        pressure = size / (2.0 * bearing.radius * bearing.length)
        turns = abs(spin) / (2.0 * math.pi)
        return OilEquilibrium(
            load=pull,
            speed=speed,
            bush_speed=bush_speed,
            position=position,
            eccentricity=eccentricity,
            attitude=math.remainder(angle - direction, 2 * math.pi),
            sommerfeld=(bearing.radius / c) ** 2 * bearing.viscosity * turns / pressure,
            film=float(film.read("film")[0]),
            pressure=float(film.read("pressure")[0]),
            torque=float(film.read("torque")[0]),
            power_loss=float(film.read("power_loss")[0]),
        )


def resolve_equilibrium(
    bearing: AbstractBearing, load: Load, speed: float, bush_speed: float
) -> tuple[AbstractBearing, OilEquilibrium]:
    """Return the bearing with a grid refined for the load, and its equilibrium on that grid."""
    at = find_equilibrium(bearing, load, speed, bush_speed)
    finer = bearing.resolve(at.film)
    return finer, at if finer is bearing else find_equilibrium(finer, load, speed, bush_speed)


def find_coefficients(bearing: AbstractBearing, at: OilEquilibrium) -> Coefficients:
    """Take central differences of the film's force; see `AbstractBearing.coefficients`."""
    step = _STEP * at.film
    rate = step * abs(at.speed + at.bush_speed)
    stiffness, damping = np.empty((2, 2)), np.empty((2, 2))
    with open_film(bearing) as film:

        def force(position: Array, velocity: Array) -> Array:
            return film.force(position, velocity, at.speed, at.bush_speed)

        for n in range(2):
            move = np.zeros(2)
            move[n] = 1.0
            still = np.zeros(2)
            ahead = force(at.position + step * move, still)
            stiffness[:, n] = (force(at.position - step * move, still) - ahead) / (2.0 * step)
            ahead = force(at.position, rate * move)
            damping[:, n] = (force(at.position, -rate * move) - ahead) / (2.0 * rate)
    return Coefficients(stiffness, damping, at)


def find_threshold(
    bearing: AbstractBearing, mass: float, load: Load, between: tuple[float, float]
) -> tuple[AbstractBearing, OilEquilibrium]:
    """Find where the critical mass is the rotor's; see `AbstractBearing.threshold_speed`."""
    from scipy.optimize import brentq

    if not (math.isfinite(mass) and mass > 0):
        raise BiellaError(f"a rotor's mass must be positive kg, got {mass!r}.")

    try:
        slow, fast = (float(speed) for speed in between)
    except (TypeError, ValueError):
        slow = fast = math.nan
    if not 0 < slow < fast < math.inf:
        raise BiellaError(f"`between` is two speeds in rad/s, 0 < slow < fast; got {between!r}.")

    def growth(log_speed: float) -> float:
        """Largest real part of the roots, as a part of the speed."""
        speed = math.exp(log_speed)
        found = find_coefficients(*resolve_equilibrium(bearing, load, speed, 0.0))
        return float(np.linalg.eigvals(_state_matrix(found, mass)).real.max() / speed)

    # Slow films may be too weak for the load, so the search starts where it is carried; and it ends
    # at the first threshold, because some bearings are stable again above it.
    seen: list[tuple[float, bool]] = []
    for place in np.linspace(math.log(slow), math.log(fast), _SPEEDS):
        at = float(place)
        try:
            grows = growth(at) > 0
        except BiellaError:
            if not seen:
                continue
            raise
        if grows and seen and not seen[-1][1]:
            speed = math.exp(float(brentq(growth, seen[-1][0], at, xtol=1e-10)))
            return resolve_equilibrium(bearing, load, speed, 0.0)
        seen.append((at, grows))
    if not seen:
        raise BiellaError(f"the film does not carry the load at any speed in {between} rad/s.")
    first, last = seen[0], seen[-1]
    state = "unstable at all" if last[1] else "stable at all"
    if first[1] != last[1]:
        state = "unstable at the lower and stable at the higher"
    raise BiellaError(
        f"a rotor of {mass:g} kg is {state} speeds from {math.exp(first[0]):.4g} to "
        f"{between[1]:.4g} rad/s: there is no threshold between them."
    )
