"""The works in Exudyn: absolute coordinates, implicit generalized-alpha, closed in position.

Planar models have three coordinates a body, 3-D ones seven and all the rows of their joints; where
these are redundant Exudyn needs its dense solver, told to pass over singular Jacobians. A spectral
radius of 0.9: with 1, which damps nothing, Newton's method fails within the run. The build without
range checks is used, one thread. Also the McPherson suspension, at small steps, as a reference.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from mechanisms.measure import Meter, final_points
from mechanisms.plants import (
    ROAD_AMPLITUDE,
    ROAD_OMEGA,
    STEP,
    WORKS,
    Array,
    Joint,
    Plant,
    mcpherson,
    plant,
    spanning_tree,
)

from peers.process import Prepare, serve

sys.exudynFast = True  # type: ignore[attr-defined]

SPECTRAL_RADIUS = 0.9


class Planar:
    """A plant in two dimensions: the plane of the work becomes Exudyn's x-y."""

    def __init__(self, made: Plant) -> None:
        import exudyn as exu
        import exudyn.itemInterface as items

        self.made = made
        normal = int(np.argmax(np.abs(made.normal)))
        # Of the plane x-z, z becomes y, and rotations about y change sign.
        self._axes, self._sign = ([0, 2], -1.0) if normal == 1 else ([0, 1], 1.0)
        self._normal = normal
        self.container = exu.SystemContainer()
        self.mbs = mbs = self.container.AddSystem()
        bodies = []
        for body in made.bodies:
            spin = self._sign * body.angular_velocity[normal]
            node = mbs.AddNode(
                items.NodeRigidBody2D(
                    referenceCoordinates=self._flat(body.position),
                    initialVelocities=[*self._flat(body.velocity)[:2], spin],
                )
            )
            bodies.append(
                mbs.AddObject(
                    items.ObjectRigidBody2D(
                        mass=body.mass, inertia=body.inertia[normal], nodeNumber=node
                    )
                )
            )
            weight = mbs.AddMarker(items.MarkerBodyMass(bodyNumber=bodies[-1]))
            mbs.AddLoad(
                items.LoadMassProportional(markerNumber=weight, loadVector=self._flat(made.gravity))
            )
        bodies.append(mbs.AddObject(items.ObjectGround()))
        for joint in made.joints:
            ends = [
                mbs.AddMarker(
                    items.MarkerBodyRigid(bodyNumber=bodies[body], localPosition=self._flat(at))
                )
                for body, at in ((joint.first, joint.at_first), (joint.second, joint.at_second))
            ]
            if joint.kind == "revolute":
                mbs.AddObject(items.ObjectJointRevolute2D(markerNumbers=ends))
            else:
                x, y, _ = self._flat(joint.axis)
                mbs.AddObject(
                    items.ObjectJointPrismatic2D(
                        markerNumbers=ends, axisMarker0=[x, y, 0], normalMarker1=[-y, x, 0]
                    )
                )
        if made.torque:
            push = self._flat(_listed_force())
            marker = mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=bodies[0]))
            mbs.AddLoad(items.LoadForceVector(markerNumber=marker, loadVector=push, bodyFixed=True))
        mbs.Assemble()
        self._reference = np.array([self._flat(body.position) for body in made.bodies])

    def _flat(self, vector: Sequence[float]) -> list[float]:
        return [vector[self._axes[0]], vector[self._axes[1]], 0.0]

    def state(self) -> tuple[Array, Array, Array, Array]:
        """Give positions, rotations and velocities of all bodies, back in three dimensions."""
        q = np.reshape(self.mbs.systemData.GetODE2Coordinates(), (-1, 3)) + self._reference
        u = np.reshape(self.mbs.systemData.GetODE2Coordinates_t(), (-1, 3))
        count = len(q)
        p, v, w = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 3))
        p[:, self._axes], v[:, self._axes] = q[:, :2], u[:, :2]
        w[:, self._normal] = self._sign * u[:, 2]
        R = np.zeros((count, 3, 3))
        R[:, self._normal, self._normal] = 1.0
        first, second = self._axes
        cos, sin = np.cos(q[:, 2]), np.sin(q[:, 2])
        R[:, first, first] = R[:, second, second] = cos
        R[:, first, second], R[:, second, first] = -sin, sin
        return p, R, v, w


class Spatial:
    """A plant in three dimensions, with Euler parameters."""

    def __init__(self, made: Plant) -> None:
        import exudyn as exu
        import exudyn.itemInterface as items
        from exudyn.utilities import RigidBodyInertia

        self.made, self._outputs = made, exu.OutputVariableType
        self.container = exu.SystemContainer()
        self.mbs = mbs = self.container.AddSystem()
        self.bodies = [
            mbs.CreateRigidBody(
                inertia=RigidBodyInertia(mass=body.mass, inertiaTensor=np.diag(body.inertia)),
                referencePosition=list(body.position),
                initialVelocity=list(body.velocity),
                initialAngularVelocity=list(body.angular_velocity),
                gravity=list(made.gravity),
            )
            for body in made.bodies
        ]
        self.bodies.append(mbs.AddObject(items.ObjectGround()))
        for joint in made.joints:
            self._join(joint)
        if made.torque:
            marker = self.marker(0, (0.0, 0.0, 0.0))
            push = list(_listed_force())
            mbs.AddLoad(items.LoadForceVector(markerNumber=marker, loadVector=push, bodyFixed=True))

    def marker(self, body: int, at: Sequence[float], rotation: Array | None = None) -> Any:
        """Add a marker to a body, with axes of its own."""
        import exudyn as exu
        import exudyn.itemInterface as items

        if rotation is None:
            return self.mbs.AddMarker(
                items.MarkerBodyRigid(bodyNumber=self.bodies[body], localPosition=list(at))
            )
        seat = exu.HT(rotation=rotation, translation=list(at))
        return self.mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=self.bodies[body], localHT=seat))

    def _join(self, joint: Joint) -> None:
        import exudyn.itemInterface as items

        if joint.kind == "spherical":
            rotation, axes = None, [1, 1, 1, 0, 0, 0]
        else:
            # x of the joint is its axis.
            x = np.array(joint.axis) / np.linalg.norm(joint.axis)
            y = np.cross(np.eye(3)[np.argmin(np.abs(x))], x)
            y /= np.linalg.norm(y)
            rotation = np.column_stack([x, y, np.cross(x, y)])
            axes = [1 if joint.kind == "revolute" else 0, 1, 1, 0, 1, 1]
        ends = [
            self.marker(joint.first, joint.at_first, rotation),
            self.marker(joint.second, joint.at_second, rotation),
        ]
        self.mbs.AddObject(items.ObjectJointGeneric(markerNumbers=ends, constrainedAxes=axes))

    def state(self) -> tuple[Array, Array, Array, Array]:
        """Give positions, rotations and velocities of all bodies."""

        def read(kind: Any) -> Array:
            return np.array(
                [self.mbs.GetObjectOutputBody(b, kind, [0, 0, 0]) for b in self.bodies[:-1]]
            )

        kinds = self._outputs
        R = read(kinds.RotationMatrix).reshape(-1, 3, 3)
        return read(kinds.Position), R, read(kinds.Velocity), read(kinds.AngularVelocity)


def _listed_force() -> tuple[float, float, float]:
    """Give the force of listing A.1 in axes of the crank: 20 N across it."""
    push = 10.0 * float(np.sqrt(2.0))
    return push, 0.0, -push


def _settings(seconds: float, step: float, dense: bool, redundant: bool) -> Any:
    import exudyn as exu

    settings = exu.SimulationSettings()
    integration = settings.timeIntegration
    integration.endTime = seconds
    integration.numberOfSteps = round(seconds / step)
    integration.verboseMode = 0
    integration.newton.useModifiedNewton = True
    integration.generalizedAlpha.spectralRadius = SPECTRAL_RADIUS
    settings.solution.file.write = False
    settings.solution.sensors.writePeriod = seconds
    settings.parallel.numberOfThreads = 1
    kinds = exu.LinearSolverType
    settings.linearSolver.solverType = kinds.EigenDense if dense else kinds.EigenSparse
    settings.linearSolver.ignoreSingularJacobian = redundant
    return settings


def _start(mbs: Any, settings: Any) -> Callable[[], None]:
    """Make ready to step; what is returned makes all steps and nothing else."""
    import exudyn as exu

    solver = exu.MainSolverImplicitSecondOrder()
    if not solver.InitializeSolver(mbs, settings):
        raise RuntimeError("Exudyn could not start.")

    def step() -> None:
        if not solver.SolveSteps(mbs, settings):
            raise RuntimeError("Exudyn did not converge.")

    return step


def prepare_plant(work: str, seconds: float, check: bool) -> Prepare:
    name = work.removesuffix("_3d")
    spatial = name != work
    small = len(plant(name).bodies) < 8
    redundant = spatial and bool(spanning_tree(plant(name))[1])

    def prepare() -> Callable[[], Any]:
        made = plant(name)
        model = Spatial(made) if spatial else Planar(made)
        if spatial:
            model.mbs.Assemble()
        meter = Meter(made)

        def look(_mbs: Any, _t: float) -> bool:
            meter.see(*model.state())
            return True

        if check:
            model.mbs.SetPreStepUserFunction(look)
        step = _start(model.mbs, _settings(seconds, STEP, redundant or small, redundant))

        def run() -> Any:
            step()
            p, R, _, _ = model.state()
            return {"points": final_points(made, p, R)}

        def run_checked() -> Any:
            step()
            state = model.state()
            meter.see(*state)
            return meter.answer(state[0], state[1])

        return run_checked if check else run

    return prepare


def prepare_mcpherson(seconds: float, step: float) -> Prepare:
    """Give the centers of all bodies every 0.05 s."""
    import exudyn.itemInterface as items

    every = round(0.05 / step)

    def prepare() -> Callable[[], Any]:
        made, (suspension, tire) = mcpherson()
        model = Spatial(made)
        mbs = model.mbs
        road = mbs.AddNode(
            items.NodePoint(
                referenceCoordinates=list(tire.at_first),
                initialVelocities=[0.0, 0.0, ROAD_AMPLITUDE * ROAD_OMEGA],
            )
        )
        mbs.AddObject(items.ObjectMassPoint(mass=1.0, nodeNumber=road))
        fixed = mbs.AddNode(items.NodePointGround())
        held = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=fixed, coordinate=0))

        def lift(_mbs: Any, t: float, _item: int, _offset: float) -> float:
            return float(ROAD_AMPLITUDE * np.sin(ROAD_OMEGA * t))

        def lift_rate(_mbs: Any, t: float, _item: int, _offset: float) -> float:
            return float(ROAD_AMPLITUDE * ROAD_OMEGA * np.cos(ROAD_OMEGA * t))

        for axis in range(3):
            moved = mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=road, coordinate=axis))
            laws = {"offsetUserFunction": lift, "offsetUserFunction_t": lift_rate}
            mbs.AddObject(
                items.ObjectConnectorCoordinate(
                    markerNumbers=[held, moved], **(laws if axis == 2 else {})
                )
            )
        patch = mbs.AddMarker(items.MarkerNodePosition(nodeNumber=road))
        for spring, first in (
            (suspension, model.marker(suspension.first, suspension.at_first)),
            (tire, patch),
        ):
            mbs.AddObject(
                items.ObjectConnectorSpringDamper(
                    markerNumbers=[first, model.marker(spring.second, spring.at_second)],
                    stiffness=spring.stiffness,
                    damping=spring.damping,
                    referenceLength=spring.free,
                )
            )
        mbs.Assemble()
        meter = Meter(made)
        track: list[list[list[float]]] = []
        count = 0

        def look(_mbs: Any = None, _t: float = 0.0) -> bool:
            nonlocal count
            if count % every == 0:
                state = model.state()
                meter.see(*state)
                track.append(state[0].tolist())
            count += 1
            return True

        mbs.SetPreStepUserFunction(look)
        make_steps = _start(mbs, _settings(seconds, step, True, False))

        def run() -> Any:
            make_steps()
            look()
            return {"closure_m": meter.closure, "every_s": every * step, "track": track}

        return run

    return prepare


def _works() -> dict[str, Callable[[float], Prepare]]:
    works: dict[str, Callable[[float], Prepare]] = {
        "mcpherson": lambda seconds: prepare_mcpherson(seconds, 2e-4),
        "mcpherson_fine": lambda seconds: prepare_mcpherson(seconds, 1e-4),
        "mcpherson_finest": lambda seconds: prepare_mcpherson(seconds, 5e-5),
    }
    for name in (*WORKS, *(f"{name}_3d" for name in WORKS)):
        works[name] = partial(prepare_plant, name, check=False)
        works[f"check_{name}"] = partial(prepare_plant, name, check=True)
    return works


if __name__ == "__main__":
    serve("exudyn", _works())
