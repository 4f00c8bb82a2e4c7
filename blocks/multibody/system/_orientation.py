"""Orientations from angles, for `rotation=` of bodies and markers in space.

Each function returns Euler parameters (e0, e1, e2, e3). Sequences are written as in
`scipy.spatial.transform.Rotation`: capitals for axes of the moving frame, R = R_i(a) R_j(b) R_k(c)
for ``"IJK"``; small letters for axes that stand still, R = R_k(c) R_j(b) R_i(a) for ``"ijk"``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import DiagramError
from ...core._ports import Numbers
from ._reading import read_direction, read_number, read_numbers
from ._rotations import Array, quaternion_from_rotation, rotation_about


def sequence_axes(sequence: Any) -> tuple[int, int, int] | None:
    """Return the three axes of a sequence, or None if it is none of the 24."""
    if not isinstance(sequence, str) or len(sequence) != 3:
        return None
    letters = "XYZ" if sequence.isupper() else "xyz"
    i, j, k = (letters.find(letter) for letter in sequence)
    return (i, j, k) if min(i, j, k) >= 0 and i != j and j != k else None


def from_angles(sequence: str, angles: Numbers) -> Array:
    """Return Euler parameters of an orientation given by three angles.

    Parameters
    ----------
    sequence
        One of 12, such as ``"ZXZ"`` (Euler) or ``"ZYX"`` (Cardan): rotations one after the other
        about axes of the moving frame; in small letters, ``"xyz"``, about axes that stand still.
    angles
        In rad, in the order of the sequence.

    Raises
    ------
    DiagramError
        If the sequence is none of these, or `angles` are not three finite numbers.
    """
    axes = sequence_axes(sequence)
    if axes is None:
        raise DiagramError(
            f"there is no sequence of angles {sequence!r}: three of X, Y, Z, of which neighbors "
            f"differ, such as 'ZXZ' or 'ZYX', or the same in small letters for fixed axes."
        )
    values = read_numbers(f"`angles` of sequence {sequence}", angles)
    if values.shape != (3,):
        raise DiagramError(f"sequence {sequence} has three angles in rad, got {angles!r}.")
    turns = [rotation_about(np.eye(3)[k], float(a)) for k, a in zip(axes, values, strict=True)]
    if sequence.islower():
        turns.reverse()
    return quaternion_from_rotation(turns[0] @ turns[1] @ turns[2])


def from_axis_angle(axis: Numbers, angle: float) -> Array:
    """Return Euler parameters of a rotation about an axis, of any length, by an angle in rad.

    Raises
    ------
    DiagramError
        If the axis has no direction.
    """
    direction = read_direction("`axis` of a rotation", axis, False)
    turn = read_number("`angle` of a rotation", angle)
    return quaternion_from_rotation(rotation_about(direction, turn))


def from_roll_pitch_yaw(roll: float, pitch: float, yaw: float) -> Array:
    """Return Euler parameters of R = R_z(yaw) R_y(pitch) R_x(roll), in rad, as in URDF."""
    return from_angles("xyz", (roll, pitch, yaw))
