"""Sensors of one or a few quantities. The signal chain behind them is their `Instrument`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import DiagramError
from ..core._ports import Parameter, Port, number, parameter
from ..core._units import Unit, parse_unit
from ..core._vectors import require_whole
from ..multibody.system._rotations import rotation_about
from ._instrument import AbstractSensor, Array, Instrument, read_unit

_MOST_CHANNELS = 64
_GRAVITY = (0.0, 0.0, -9.80665)  # that of a System in space


class Sensor(AbstractSensor):
    """An instrument for any quantity: pressure, temperature, displacement ….

    Parameters
    ----------
    instrument
        Gain, bandwidth, noise …: an `Instrument`; ideal if not given.
    measures
        Unit of the quantity; any if not given.
    channels
        How many quantities of that kind.
    seed
        Chooses the noise; two sensors with one seed have the same. If not given, it is derived
        from the block's path in the top diagram: each sensor has its own.
    faults
        Whether `dropout` and `stuck` are one signal for ``"all"`` channels, or one for ``"each"``.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    def __init__(
        self,
        instrument: Instrument | None = None,
        measures: str | None = None,
        channels: int = 1,
        *,
        seed: int | None = None,
        faults: str = "all",
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        require_whole("channels", channels, 1, _MOST_CHANNELS)
        super().__init__(
            instrument,
            [Port("u", channels, unit=measures, doc="measured quantity")],
            channels,
            read_unit(measures),
            seed=seed,
            faults=faults,
            own_integers=[0],
            period=period,
            offset=offset,
        )


class TorqueMeter(AbstractSensor):
    """A torque meter in a shaft. Its pulses, if it has a toothed wheel, are an `Encoder`'s.

    Parameters
    ----------
    instrument
        Gain in V/(N m) …: an `Instrument`, such as `presets.TORQUE_METER`; ideal if not given.
    seed
        Chooses the noise; two sensors with one seed have the same. If not given, it is derived
        from the block's path in the top diagram: each sensor has its own.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    def __init__(
        self,
        instrument: Instrument | None = None,
        *,
        seed: int | None = None,
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        super().__init__(
            instrument,
            [Port("torque", unit="N.m", doc="in the shaft")],
            1,
            parse_unit("N.m"),
            seed=seed,
            faults="all",
            own_integers=[0],
            period=period,
            offset=offset,
        )


class LoadCell(AbstractSensor):
    """A load cell of one to six axes with crosstalk between the axes.

    q = (I + crosstalk) (forces, torques), followed by the signal chain of each channel.

    Parameters
    ----------
    instrument
        Gain, bandwidth, noise …: an `Instrument`, such as `presets.LOAD_CELL`; ideal if not given.
    forces, torques
        Number of force and torque axes, in N and N m; the block has an input port for each kind.
    crosstalk
        Row i: the fraction of each other load that channel i measures, in its own unit over that
        of the load. A gain error of channel i is `crosstalk[i, i]`.
    seed
        Chooses the noise; two sensors with one seed have the same. If not given, it is derived
        from the block's path in the top diagram: each sensor has its own.
    faults
        Whether `dropout` and `stuck` are one signal for ``"all"`` channels, or one for ``"each"``.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    def __init__(
        self,
        instrument: Instrument | None = None,
        forces: int = 1,
        torques: int = 0,
        *,
        crosstalk: npt.ArrayLike | None = None,
        seed: int | None = None,
        faults: str = "all",
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        for name, count in (("forces", forces), ("torques", torques)):
            require_whole(name, count, 0, _MOST_CHANNELS)
        channels = forces + torques
        if channels == 0:
            raise DiagramError("a LoadCell has at least one force or torque.")
        kinds = [
            Port(name, count, unit=unit, doc=f"{name} on the cell")
            for name, count, unit in (("force", forces, "N"), ("torque", torques, "N.m"))
            if count
        ]
        mixed = len(kinds) > 1
        mixing = []
        if crosstalk is not None:
            mixing = [
                parameter(
                    "mixing",
                    np.eye(channels) + _check_crosstalk(crosstalk, channels),
                    doc="gain of each channel for each load: 1 on the diagonal, and crosstalk",
                )
            ]
        super().__init__(
            instrument,
            kinds,
            channels,
            None if mixed else parse_unit("N" if forces else "N.m"),
            seed=seed,
            faults=faults,
            own_parameters=mixing,
            own_integers=[len(mixing)],
            period=period,
            offset=offset,
        )


class AbstractInertialSensor(AbstractSensor):
    """Base of sensors on a body, which measure a world-frame vector along the sensor axes.

    q = (I + crosstalk) axes Mᵀ Rᵀ (vector - zero), R the rotation of the body, M the small one by
    which the case is misaligned on it.
    """

    kernel = "accelerometer"

    def __init__(
        self,
        instrument: Instrument | None,
        vector: Port,
        zero: Parameter,
        axes: npt.ArrayLike | None,
        misalignment: npt.ArrayLike,
        crosstalk: npt.ArrayLike | None,
        **options: Any,
    ) -> None:
        rows = _read_axes(np.eye(3) if axes is None else axes)
        turn = _read_vector("misalignment", misalignment)
        angle = float(np.linalg.norm(turn))
        case = rotation_about(turn / angle, angle) if angle else np.eye(3)
        mixing = np.eye(len(rows))
        if crosstalk is not None:
            mixing = mixing + _check_crosstalk(crosstalk, len(rows))
        assert isinstance(vector.unit, Unit)
        super().__init__(
            instrument,
            [vector, Port("rotation", 4, default=(1.0, 0.0, 0.0, 0.0), doc="Euler parameters")],
            len(rows),
            vector.unit,
            own_parameters=[
                zero,
                parameter("sensitive", mixing @ rows @ case.T, doc="sensitivity of each axis"),
            ],
            **options,
        )


class Accelerometer(AbstractInertialSensor):
    """An accelerometer on a body: acceleration less gravity along its axes.

    q = (I + crosstalk) axes Mᵀ Rᵀ (a - g): a is the second derivative of the position in axes of
    the world, which a mechanism gives as ``acceleration``; g is gravity, R the rotation of the
    body, M the small one by which the case is misaligned on it. At rest, q is 1 g upwards; in free
    fall, 0. Bias is the `offset` of the instrument.

    Parameters
    ----------
    instrument
        Gain, bandwidth, noise …: an `Instrument`, such as `presets.ACCELEROMETER`; ideal if not
        given.
    axes
        Rows of directions in the case; x, y and z if not given. Their lengths do not count.
    gravity
        Of the world, in m/s²: at rest, (0, 0, -9.81) shows as +9.81 along z. If not given, that of
        the mechanism that `acceleration` comes from, as built; without a mechanism,
        (0, 0, -9.80665). Zero for a port that already carries acceleration less gravity.
    misalignment
        Rotation vector of the case on the body, in rad.
    crosstalk
        Row i: the fraction of each other axis that axis i measures.
    seed
        Chooses the noise; two sensors with one seed have the same. If not given, it is derived
        from the block's path in the top diagram: each sensor has its own.
    faults
        Whether `dropout` and `stuck` are one signal for ``"all"`` axes, or one for ``"each"``.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    def __init__(
        self,
        instrument: Instrument | None = None,
        axes: npt.ArrayLike | None = None,
        *,
        gravity: npt.ArrayLike | None = None,
        misalignment: npt.ArrayLike = (0.0, 0.0, 0.0),
        crosstalk: npt.ArrayLike | None = None,
        seed: int | None = None,
        faults: str = "all",
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        super().__init__(
            instrument,
            Port("acceleration", 3, unit="m/s2", doc="of the position, in axes of the world"),
            parameter(
                "gravity",
                _read_vector("gravity", _GRAVITY if gravity is None else gravity),
                unit="m/s2",
                doc="of the world, in its axes",
                derived="gravity" if gravity is None else "",
            ),
            axes, misalignment, crosstalk, seed=seed, faults=faults, period=period, offset=offset,
        )  # fmt: skip


class Gyroscope(AbstractInertialSensor):
    """A rate gyro on a body: what its axes feel of the angular velocity.

    q = (I + crosstalk) axes Mᵀ Rᵀ ω: ω in axes of the world, R the rotation of the body, M the
    small one by which the case is misaligned on it. Its bias is the `offset` of the instrument,
    which wanders by its `random_walk` K; with its one-sided density of `noise` D, the Allan
    variance at rest is D² / (2 τ) + K² τ / 3: an angle random walk of D / √2 per √s.

    Parameters
    ----------
    instrument
        Gain, bandwidth, noise …: an `Instrument`, such as `presets.GYROSCOPE`; ideal if not given.
    axes
        Rows of directions in the case; x, y and z if not given. Their lengths do not count.
    misalignment
        Rotation vector of the case on the body, in rad.
    crosstalk
        Row i: the fraction of each other axis that axis i measures.
    seed
        Chooses the noise; two sensors with one seed have the same. If not given, it is derived
        from the block's path in the top diagram: each sensor has its own.
    faults
        Whether `dropout` and `stuck` are one signal for ``"all"`` axes, or one for ``"each"``.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    def __init__(
        self,
        instrument: Instrument | None = None,
        axes: npt.ArrayLike | None = None,
        *,
        misalignment: npt.ArrayLike = (0.0, 0.0, 0.0),
        crosstalk: npt.ArrayLike | None = None,
        seed: int | None = None,
        faults: str = "all",
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        super().__init__(
            instrument,
            Port("angular_velocity", 3, unit="rad/s", doc="in axes of the world"),
            parameter("still", np.zeros(3), hidden=True, tunable=False),
            axes, misalignment, crosstalk, seed=seed, faults=faults, period=period, offset=offset,
        )  # fmt: skip


class ProximityPair(AbstractSensor):
    """Two proximity probes at a shaft, which measure the orbit of a journal.

    Probe k is at angle a_k from x toward y and measures the gap along its line,
    gap - e·n_k + (e·t_k)² / (r + √(r² - (e·t_k)²)) - runout(a_k - angle), where e is the position
    of the shaft's center.

    Parameters
    ----------
    instrument
        Gain in V/m …: an `Instrument`, such as `presets.PROXIMITY_PROBE`; ideal if not given.
    gap
        With the shaft in the middle, in m.
    radius
        Radius of the shaft in m: if finite, a probe also responds to motion across its line.
    places
        Angles of the probes, in rad: 45° to both sides of y if not given.
    runout
        How far the surface stands out, in m, at evenly spaced angles of one turn of the shaft.
    seed
        Chooses the noise; two sensors with one seed have the same. If not given, it is derived
        from the block's path in the top diagram: each sensor has its own.
    faults
        Whether `dropout` and `stuck` are one signal for ``"all"`` probes, or one for ``"each"``.
    period, offset
        Sample time in seconds; without one, that of the input, or every tick if it is continuous.
    """

    kernel = "proximity"

    def __init__(
        self,
        instrument: Instrument | None = None,
        gap: float = 1e-3,
        *,
        radius: float = math.inf,
        places: npt.ArrayLike = (math.pi / 4, 3 * math.pi / 4),
        runout: npt.ArrayLike | None = None,
        seed: int | None = None,
        faults: str = "all",
        period: float | None = None,
        offset: float = 0.0,
    ) -> None:
        gap, radius = number("gap", gap), number("radius", radius)
        for name, value in (("gap", gap), ("radius", radius)):
            if not value > 0:
                raise DiagramError(f"`{name}` of a ProximityPair is above 0, in m; got {value!r}.")
        angles = parameter("places", places).value
        if angles.shape != (2,) or abs(math.sin(angles[1] - angles[0])) < 1e-6:
            raise DiagramError(
                f"`places` of a ProximityPair are two angles in rad whose lines are not the same; "
                f"got {places!r}."
            )
        places_ = np.column_stack([np.cos(angles), np.sin(angles), angles])
        surface = [] if runout is None else [parameter("runout", runout, hidden=True)]
        if surface and surface[0].value.ndim != 1:
            raise DiagramError("`runout` of a ProximityPair is a list of heights around the shaft.")
        super().__init__(
            instrument,
            [
                Port("position", 2, unit="m", doc="of the shaft's center: x, y"),
                Port("angle", unit="rad", default=0.0, doc="of the shaft, for its runout"),
            ],
            2,
            parse_unit("m"),
            seed=seed,
            faults=faults,
            own_parameters=[
                parameter("gap", gap, unit="m", doc="with the shaft in the middle"),
                parameter("radius", radius, unit="m", doc="of the shaft", finite=False),
                parameter("probes", places_, hidden=True),
                *surface,
            ],
            own_integers=[surface[0].value.size if surface else 0],
            period=period,
            offset=offset,
        )
        self._gap, self._directions = float(gap), places_[:, :2]

    def orbit(self, y: npt.ArrayLike) -> Array:
        """Return x and y of the shaft's center in m from what the probes gave.

        By gain and offset alone, as one reads an oscilloscope: nonlinearity, runout and the
        roundness of the shaft stay in it.

        Parameters
        ----------
        y
            Rows of two values.
        """
        gaps = (np.asarray(y, dtype=np.float64) - self.instrument.offset) / self.instrument.gain
        found: Array = np.linalg.solve(self._directions, (self._gap - gaps).T).T
        return found


def _check_crosstalk(crosstalk: Any, channels: int) -> Array:
    matrix = parameter("crosstalk", crosstalk).value
    if matrix.shape != (channels, channels):
        raise DiagramError(
            f"`crosstalk` has shape {matrix.shape}, but there are {channels} channels: it is "
            f"{channels} × {channels}."
        )
    return matrix


def _read_vector(name: str, value: Any) -> Array:
    vector = parameter(name, value).value
    if vector.shape != (3,):
        raise DiagramError(f"`{name}` is a vector of x, y and z, got {value!r}.")
    return vector


def _read_axes(axes: Any) -> Array:
    rows = np.atleast_2d(parameter("axes", axes).value)
    lengths = np.linalg.norm(rows, axis=-1)
    if rows.ndim != 2 or rows.shape[1] != 3 or not np.all(lengths > 0):
        raise DiagramError(f"`axes` are rows of x, y and z, none of them zero; got {axes!r}.")
    found: Array = rows / lengths[:, None]
    return found
