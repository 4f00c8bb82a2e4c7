"""A tree robot against Pinocchio: articulated bodies (`aba`) and inverse dynamics (`rnea`).

Pinocchio's model is made from the same description as the engine's block, in the pose that the
engine shows: every joint of the model is a joint of the system between its two markers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from biella import Diagram
from biella.blocks.multibody import Joint, System
from biella.blocks.multibody.system._rotations import rotation_from_quaternion

pytestmark = [pytest.mark.engine, pytest.mark.slow]

Array = NDArray[np.float64]
BODY = ("position", "rotation", "velocity", "angular_velocity")
ACCELERATIONS = ("acceleration", "angular_acceleration")


def draw_rotation(rng: np.random.Generator) -> Array:
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else -q


def draw_robot(seed: int, count: int) -> System:
    """Return a tree of links in motion, with loads on bodies and efforts in joints."""
    rng = np.random.default_rng(seed)
    s = System("robot", gravity=rng.normal(scale=6.0, size=3))
    bodies = [s.ground]
    for k in range(count):
        axes, squares = draw_rotation(rng), rng.uniform(0.02, 0.2, size=3)
        body = s.body(
            f"link{k}",
            mass=float(rng.uniform(0.5, 3.0)),
            inertia=axes @ np.diag(squares.sum() - squares) @ axes.T,
            com=rng.uniform(-0.3, 0.3, size=3),
            position=rng.uniform(-1, 1, size=3),
            rotation=draw_rotation(rng),
            velocity=rng.normal(size=3),
            angular_velocity=rng.normal(size=3),
        )
        parent = bodies[int(rng.integers(max(0, k - 3), k + 1))]
        kind = ("revolute", "prismatic", "spherical")[k % 3]
        place, frame = rng.uniform(-1, 1, size=3), draw_rotation(rng)
        ends = [
            one.marker(f"j{k}", one.rotation.T @ (place - one.position), rotation=turn)
            for one, turn in ((parent, parent.rotation.T @ frame), (body, body.rotation.T @ frame))
        ]
        # Joints stand both ways round in the description.
        joint = getattr(s, kind)(f"j{k}", *(ends if rng.random() < 0.5 else ends[::-1]))
        if kind != "spherical":
            effort = s.torque if kind == "revolute" else s.force
            effort(f"effort{k}", joint, float(rng.normal(scale=5.0)))
        load = body.marker("load", rng.uniform(-0.3, 0.3, size=3))
        s.force(f"force{k}", load, rng.normal(scale=5.0, size=3))
        s.torque(f"torque{k}", load, rng.normal(scale=2.0, size=3))
        bodies.append(body)
    return s


class PinocchioTree:
    """The same tree in Pinocchio, its joints outwards from the ground."""

    def __init__(self, system: System, seen: dict[str, Array]) -> None:
        import pinocchio as pin

        self.pin, self.system = pin, system
        self.model = model = pin.Model()
        model.gravity.linear = np.array(system.gravity)
        kinds = {
            "revolute": pin.JointModelRZ,
            "prismatic": pin.JointModelPZ,
            "spherical": pin.JointModelSpherical,
        }
        self.joints = {"ground": 0}
        # Of every body: its frame in that of the joint that carries it.
        self.seats = {"ground": pin.SE3.Identity()}
        self.carrier: dict[str, tuple[Joint, bool]] = {}
        for body in system.bodies:
            joint = next(j for j in system.joints if self._outer(j) == body.name)
            outwards = joint.second.body is body
            self.carrier[body.name] = joint, outwards
            inner, outer = joint.first, joint.second
            frames = joint.frame_i, joint.frame_j
            if not outwards:
                inner, outer, frames = outer, inner, frames[::-1]
            parent = inner.body.name
            base = self.seats[parent] * pin.SE3(frames[0], np.array(inner.position))
            number = model.addJoint(self.joints[parent], kinds[joint.kind](), base, joint.name)
            seat = pin.SE3(frames[1], np.array(outer.position)).inverse()
            inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
            model.appendBodyToJoint(number, inertia, seat)
            self.joints[body.name], self.seats[body.name] = number, seat
        self.data = model.createData()
        self._read(seen)

    def _outer(self, joint: Joint) -> str:
        """The body that a joint carries: bodies are numbered from the ground outwards."""
        return max((joint.first.body, joint.second.body), key=lambda body: body.index).name

    def _read(self, seen: dict[str, Array]) -> None:
        """Set q, v and loads from the poses and velocities of the bodies."""
        pin, model = self.pin, self.model
        world = {"ground": (pin.SE3.Identity(), np.zeros(3), np.zeros(3))}
        for body in self.system.bodies:
            r = rotation_from_quaternion(seen[f"{body.name}.rotation"])
            pose = pin.SE3(np.array(r), seen[f"{body.name}.position"])
            world[body.name] = (
                pose,
                seen[f"{body.name}.velocity"],
                seen[f"{body.name}.angular_velocity"],
            )
        self.q, self.v, self.tau = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        system: Any = self.system  # its elements are of the kinds that `draw` makes
        efforts = {e.joint.name: e.effort.number for e in system.elements if hasattr(e, "of")}
        self.forces = [pin.Force.Zero() for _ in range(model.njoints)]
        for body in self.system.bodies:
            joint, outwards = self.carrier[body.name]
            inner = (joint.first if outwards else joint.second).body.name
            number = self.joints[body.name]
            at, where = model.joints[number].idx_q, model.joints[number].idx_v
            base = world[inner][0] * self.seats[inner].inverse() * model.jointPlacements[number]
            tip = world[body.name][0] * self.seats[body.name].inverse()
            moved = base.actInv(tip)
            spin = tip.rotation.T @ (world[body.name][2] - world[inner][2])
            if joint.kind == "spherical":
                self.q[at : at + 4] = pin.Quaternion(moved.rotation).coeffs()
                self.v[where : where + 3] = spin
            elif joint.kind == "revolute":
                self.q[at] = np.arctan2(moved.rotation[1, 0], moved.rotation[0, 0])
                self.v[where] = spin[2]
            else:
                self.q[at] = moved.translation[2]
                arms = [tip.translation - world[name][0].translation for name in (body.name, inner)]
                speeds = [
                    world[name][1] + np.cross(world[name][2], arm)
                    for name, arm in zip((body.name, inner), arms, strict=True)
                ]
                self.v[where] = (speeds[0] - speeds[1]) @ tip.rotation[:, 2]
            sign = 1.0 if outwards else -1.0
            self.tau[where] = sign * efforts.get(joint.name, 0.0)
            force, torque = (
                np.array([law.number for law in system[f"{what}{body.name[4:]}"].components])
                for what in ("force", "torque")
            )
            place = world[body.name][0].act(np.array(body.markers["load"].position))
            moment = torque + np.cross(place - tip.translation, force)
            self.forces[number] = pin.Force(tip.rotation.T @ force, tip.rotation.T @ moment)

    def accelerations(self) -> dict[str, Array]:
        """Return those of every body's frame in world axes, by `aba`."""
        pin, model, data = self.pin, self.model, self.data
        external = pin.StdVec_Force()
        for force in self.forces:
            external.append(force)
        self.vd = pin.aba(model, data, self.q, self.v, self.tau, external)
        pin.forwardKinematics(model, data, self.q, self.v, self.vd)
        aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        found = {}
        for body in self.system.bodies:
            number, seat = self.joints[body.name], self.seats[body.name]
            motion = pin.getClassicalAcceleration(model, data, number, aligned)
            w = pin.getVelocity(model, data, number, aligned).angular
            arm = data.oMi[number].rotation @ seat.translation
            found[f"{body.name}.acceleration"] = (
                motion.linear + np.cross(motion.angular, arm) + np.cross(w, np.cross(w, arm))
            )
            found[f"{body.name}.angular_acceleration"] = motion.angular
        return found

    def efforts(self, accelerations: Array) -> Array:
        """Return the efforts that give these accelerations, by `rnea`."""
        external = self.pin.StdVec_Force()
        for force in self.forces:
            external.append(force)
        return np.array(
            self.pin.rnea(self.model, self.data, self.q, self.v, accelerations, external)
        )


def see(system: System, extra: list[str], steps: int) -> dict[str, Any]:
    paths = [f"{body.name}.{what}" for body in system.bodies for what in BODY + ACCELERATIONS]
    diagram = Diagram("robot", step=1e-3)
    diagram.add(system.block(outputs=[*paths, *extra]), name="plant")
    with diagram.compile().instantiate() as instance:
        if steps:
            instance.run(steps)
        return {path: np.array(instance.get(f"plant.{path}")) for path in [*paths, *extra]}


# Random velocities do not fit the joints, which is said.
@pytest.mark.filterwarnings("ignore:.*the velocities given do not fit:biella.BiellaWarning")
@pytest.mark.parametrize("steps", [0, 50], ids=["start", "in motion"])
@pytest.mark.parametrize("count", [12, 30])
@pytest.mark.parametrize("seed", range(3))
def test_a_tree_robot_has_pinocchios_accelerations(seed: int, count: int, steps: int) -> None:
    s = draw_robot(seed, count)
    speeds = [f"{j.name}.acceleration" for j in s.joints if j.kind in ("revolute", "prismatic")]
    seen = see(s, speeds, steps)
    peer = PinocchioTree(s, seen)
    expected = peer.accelerations()
    size = max(np.abs(value).max() for value in expected.values())
    assert size > 10.0
    for path, value in expected.items():
        assert seen[path] == pytest.approx(value, rel=0, abs=1e-10 * size), path

    # The joint accelerations of the engine need just the efforts that it was given.
    vd = peer.vd.copy()
    for body in s.bodies:
        joint, outwards = peer.carrier[body.name]
        if joint.kind != "spherical":
            where = peer.model.joints[peer.joints[body.name]].idx_v
            vd[where] = float(seen[f"{joint.name}.acceleration"]) * (1.0 if outwards else -1.0)
    largest = max(1.0, np.abs(peer.tau).max(), 3.0 * size)
    assert peer.efforts(vd) == pytest.approx(peer.tau, abs=1e-10 * largest)
