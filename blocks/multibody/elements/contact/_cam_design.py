"""Outlines of cams from the lift of their followers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .....errors import DiagramError
from ....core._ports import Numbers
from ...system._reading import read_not_negative, read_number, read_numbers, read_positive
from ...system._rotations import Array
from ._shapes import FEWEST_POINTS, MOST_POINTS

FINE = 8
"""Points of the outline for each of the table, between which it is interpolated."""


class CamDesign(NamedTuple):
    """The outline of a cam, and what limits it.

    Attributes
    ----------
    radii
        For `CamProfile`: r in m at equal angles of the cam.
    angles
        Cam angles θ at which the following are given.
    pressure_angle
        Between the normal and the direction of the follower, in rad; 0 under a flat face.
    curvature_radius
        Of the outline, in m: negative where it is hollow.
    offset
        From the axis of a flat face to the point of contact in m, s′; of a roller its offset e.
    """

    radii: Array
    angles: Array
    pressure_angle: Array
    curvature_radius: Array
    offset: Array


def cam_for_roller(
    lift: Numbers,
    *,
    base_radius: float,
    roller_radius: float,
    offset: float = 0.0,
    points: int = 720,
) -> CamDesign:
    """Return the outline that lifts a roller by s(θ).

    The follower moves along +y of the world, and the cam turns by θ about z, counterclockwise. In
    axes of the cam the roller's center is at (s0 + s)(sin θ, cos θ) + e (cos θ, -sin θ), with
    s0 = √((r_b + r_r)² - e²); the outline is r_r nearer along the normal. The pressure angle α has
    tan α = (s′ - e) / (s0 + s).

    Parameters
    ----------
    lift
        s in m at equal cam angles over one turn, the first at θ = 0; a periodic cubic spline.
    base_radius, roller_radius, offset
        r_b, r_r and e in m.
    points
        Of the table that is returned.

    Raises
    ------
    DiagramError
        If the roller cannot follow: the outline would be undercut.
    """
    owner = "cam_for_roller"
    base = read_positive(owner, "base_radius", base_radius)
    roller = read_positive(owner, "roller_radius", roller_radius)
    e = read_number(f"`offset` of {owner}", offset)
    if abs(e) >= base + roller:
        raise DiagramError(
            f"`offset` of {owner} is below base_radius + roller_radius = {base + roller:g} m, got "
            f"{e:g}."
        )
    theta, s, first, second = _read_lift(owner, lift, points)
    height = np.sqrt((base + roller) ** 2 - e**2) + s
    along, across = _axes(theta)
    center = height[:, None] * along + e * across
    tangent = (first - e)[:, None] * along + height[:, None] * across
    bend = (second - height)[:, None] * along + (2.0 * first - e)[:, None] * across
    size = np.linalg.norm(tangent, axis=1)
    normal = np.column_stack([-tangent[:, 1], tangent[:, 0]]) / size[:, None]
    turning = tangent[:, 1] * bend[:, 0] - tangent[:, 0] * bend[:, 1]
    with np.errstate(divide="ignore"):
        pitch = size**3 / turning
    tight = (pitch > 0) & (pitch <= roller)
    if tight.any():
        worst = int(np.where(tight, pitch, np.inf).argmin())
        raise DiagramError(
            f"the outline of {owner} is undercut at θ = {theta[worst]:.4g} rad: the path of the "
            f"roller's center has the radius {pitch[worst]:.4g} m there, the roller {roller:g} m. "
            f"Take a larger base_radius, a smaller roller_radius or a smoother lift."
        )
    angle = np.arctan2(first - e, height)
    radii = _table(owner, center - roller * normal, points)
    return CamDesign(radii, theta, angle, pitch - roller, np.full_like(theta, e))


def cam_for_face(lift: Numbers, *, base_radius: float, points: int = 720) -> CamDesign:
    """Return the outline that lifts a flat face by s(θ), which is across the follower.

    In axes of the cam the point of contact is (r_b + s)(sin θ, cos θ) + s′ (cos θ, -sin θ); the
    radius of curvature is r_b + s + s″.

    Parameters
    ----------
    lift, points
        As in `cam_for_roller`.
    base_radius
        r_b in m.

    Raises
    ------
    DiagramError
        If the outline would be hollow, where a flat face does not reach it.
    """
    owner = "cam_for_face"
    base = read_positive(owner, "base_radius", base_radius)
    theta, s, first, second = _read_lift(owner, lift, points)
    curvature = base + s + second
    if not (curvature > 0).all():
        worst = int(curvature.argmin())
        raise DiagramError(
            f"the outline of {owner} is hollow at θ = {theta[worst]:.4g} rad: its radius of "
            f"curvature is {curvature[worst]:.4g} m. Take base_radius above "
            f"{base - curvature[worst]:.4g} m, or a smoother lift."
        )
    along, across = _axes(theta)
    radii = _table(owner, (base + s)[:, None] * along + first[:, None] * across, points)
    return CamDesign(radii, theta, np.zeros_like(theta), curvature, first)


def _axes(theta: Array) -> tuple[Array, Array]:
    sine, cosine = np.sin(theta), np.cos(theta)
    return np.column_stack([sine, cosine]), np.column_stack([cosine, -sine])


def _read_lift(owner: str, lift: Numbers, points: int) -> tuple[Array, Array, Array, Array]:
    """Return cam angles, lift and its first two derivatives."""
    table = read_numbers(f"`lift` of {owner}", lift)
    if table.ndim != 1 or len(table) < FEWEST_POINTS:
        raise DiagramError(
            f"`lift` of {owner} is a table of at least {FEWEST_POINTS} numbers over one turn; got "
            f"an array of shape {table.shape}."
        )
    read_not_negative(owner, "lift", float(table.min()))
    if not isinstance(points, int) or not FEWEST_POINTS <= points <= MOST_POINTS:
        raise DiagramError(
            f"`points` of {owner} is a whole number from {FEWEST_POINTS} to {MOST_POINTS}, got "
            f"{points!r}."
        )
    from scipy.interpolate import CubicSpline  # here: it takes longer than all the rest

    knots = 2.0 * np.pi / len(table) * np.arange(len(table) + 1)
    spline = CubicSpline(knots, np.append(table, table[0]), bc_type="periodic")
    count = FINE * max(points, len(table))
    theta = 2.0 * np.pi / count * np.arange(count)
    angles: Array = theta.astype(np.float64)
    return angles, spline(angles), spline(angles, 1), spline(angles, 2)


def _table(owner: str, outline: Array, points: int) -> Array:
    """Return r at equal angles of an outline that runs clockwise from y."""
    angle = np.unwrap(np.arctan2(outline[:, 1], outline[:, 0]))[::-1]
    radius = np.linalg.norm(outline, axis=1)[::-1]
    if not (np.diff(angle) > 0).all() or abs(angle[-1] - angle[0]) > 2.0 * np.pi:
        raise DiagramError(
            f"the outline of {owner} has several radii at one angle: take a larger base_radius or "
            f"a smaller offset."
        )
    from scipy.interpolate import CubicSpline

    ends = np.append(angle, angle[0] + 2.0 * np.pi), np.append(radius, radius[0])
    wanted = 2.0 * np.pi / points * np.arange(points)
    found: Array = CubicSpline(*ends, bc_type="periodic")(
        angle[0] + np.mod(wanted - angle[0], 2.0 * np.pi)
    )
    return found
