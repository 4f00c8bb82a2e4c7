"""The works in Pinocchio: RK4 on its constrained dynamics, as its examples close loops.

The tree is closed by point constraints with Baumgarte's terms, solved by the proximal iteration,
which stands redundant rows. Gains of 1e4 and 200 (100 1/s, critically damped) closed best of those
tried: without them the four-bars break apart in their singular positions, with stiffer ones the
slider-crank closes worse. The loop of the steps is Python, as in the examples; a call costs some
10 µs.

Also the accelerations of the tree robot, from the articulated-body algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from mechanisms.measure import Meter, final_points
from mechanisms.plants import (
    STEP,
    WORKS,
    ZERO,
    Array,
    joint_speeds,
    place,
    plant,
    spanning_tree,
    tree_robot,
)

from peers.process import Prepare, serve

KP, KD = 1e4, 200.0
PROXIMAL = (1e-12, 1e-10, 10)
"""Accuracy, regularization and largest number of iterations."""


def prepare_plant(work: str, seconds: float, check: bool) -> Prepare:
    import pinocchio as pin

    made = plant(work)
    tree, cuts = spanning_tree(made)
    model = pin.Model()
    model.gravity.linear = np.array(made.gravity)
    # A joint frame is parallel to the body's and sits at the joint: `seats` has it in body axes.
    joints, seats = {-1: 0}, {-1: np.zeros(3)}
    places = [np.array(body.position) for body in made.bodies] + [np.zeros(3)]
    for number, base, joint_number in tree:
        body = made.bodies[number]
        if joint_number < 0:
            at, moving = ZERO, pin.JointModelFreeFlyer()
        else:
            joint = made.joints[joint_number]
            at = joint.at_second if joint.second == number else joint.at_first
            revolute = joint.kind == "revolute"
            kind = pin.JointModelRevoluteUnaligned if revolute else pin.JointModelPrismaticUnaligned
            moving = kind(np.array(joint.axis))
        seats[number] = np.array(at)
        offset = places[number] + seats[number] - places[base] - seats[base]
        seat = pin.SE3(np.eye(3), offset)
        joints[number] = model.addJoint(joints[base], moving, seat, body.name)
        inertia = pin.Inertia(body.mass, -seats[number], np.diag(body.inertia))
        model.appendBodyToJoint(joints[number], inertia, pin.SE3.Identity())

    closures, closure_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for joint in (made.joints[number] for number in cuts):
        closure = pin.RigidConstraintModel(
            pin.ContactType.CONTACT_3D,
            model,
            joints[joint.first],
            pin.SE3(np.eye(3), np.array(joint.at_first) - seats[joint.first]),
            joints[joint.second],
            pin.SE3(np.eye(3), np.array(joint.at_second) - seats[joint.second]),
            pin.ReferenceFrame.LOCAL,
        )
        closure.setBaumgarteCorrectorParameters(pin.BaumgarteCorrectorParameters(KP, KD))
        closures.append(closure)
        closure_data.append(closure.createData())

    data = model.createData()
    pin.initConstraintDynamics(model, data, closures, closure_data)
    proximal = pin.ProximalSettings(*PROXIMAL)
    tau = np.zeros(model.nv)
    tau[model.joints[joints[0]].idx_v] = made.torque
    numbers = [joints[body] for body in range(len(made.bodies))]
    seated = np.array([seats[body] for body in range(len(made.bodies))])
    steps, h = round(seconds / STEP), STEP

    def accelerate(q: Array, v: Array) -> Array:
        if not cuts:
            free: Array = pin.aba(model, data, q, v, tau).copy()
            return free
        a: Array = pin.constraintDynamics(
            model, data, q, v, tau, closures, closure_data, proximal
        ).copy()
        return a

    flat = model.nq == model.nv

    def move(q: Array, dq: Array) -> Array:
        """Add a displacement; of a free body by `integrate`, which leaves RK4 of lower order."""
        moved: Array = q + dq if flat else pin.integrate(model, q, dq)
        return moved

    def step(q: Array, v: Array) -> tuple[Array, Array]:
        a1 = accelerate(q, v)
        v2 = v + h / 2 * a1
        a2 = accelerate(move(q, h / 2 * v), v2)
        v3 = v + h / 2 * a2
        a3 = accelerate(move(q, h / 2 * v2), v3)
        v4 = v + h * a3
        a4 = accelerate(move(q, h * v3), v4)
        mean = h / 6 * (v + 2 * (v2 + v3) + v4)
        return move(q, mean), v + h / 6 * (a1 + 2 * (a2 + a3) + a4)

    def poses(q: Array, v: Array) -> tuple[Array, Array, Array]:
        pin.forwardKinematics(model, data, q, v)
        R = np.array([data.oMi[i].rotation for i in numbers])
        seat = np.array([data.oMi[i].translation for i in numbers])
        return seat - np.einsum("ijk,ik->ij", R, seated), R, seat

    def look(meter: Meter, q: Array, v: Array) -> None:
        p, R, seat = poses(q, v)
        frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        velocities = [pin.getVelocity(model, data, i, frame) for i in numbers]
        w = np.array([velocity.angular for velocity in velocities])
        linear = np.array([velocity.linear for velocity in velocities])
        meter.see(p, R, linear + np.cross(w, p - seat), w)

    def prepare() -> Callable[[], Any]:
        q, v = pin.neutral(model), np.zeros(model.nv)
        for (body, _, joint_number), speed in zip(tree, joint_speeds(made), strict=True):
            at = model.joints[joints[body]].idx_v
            if joint_number >= 0:
                v[at] = speed
            else:
                start = made.bodies[body]
                v[at : at + 6] = [*start.velocity, *start.angular_velocity]

        def run() -> Any:
            q_now, v_now = q, v
            for _ in range(steps):
                q_now, v_now = step(q_now, v_now)
            return {"points": final_points(made, *poses(q_now, v_now)[:2])}

        def run_checked() -> Any:
            meter = Meter(made)
            q_now, v_now = q, v
            look(meter, q_now, v_now)
            for _ in range(steps):
                q_now, v_now = step(q_now, v_now)
                look(meter, q_now, v_now)
            return meter.answer(*poses(q_now, v_now)[:2])

        return run_checked if check else run

    return prepare


def prepare_tree(seed: float) -> Prepare:
    """Give the accelerations of the tree robot of a seed, in the place of seconds."""
    import pinocchio as pin

    links = tree_robot(int(seed))
    model = pin.Model()
    model.gravity.linear = np.array([0.0, 0.0, -9.80665])
    kinds = {
        "revolute": pin.JointModelRZ,
        "prismatic": pin.JointModelPZ,
        "spherical": pin.JointModelSpherical,
    }
    # Depth-first, for the reason that `spanning_tree` gives.
    children: dict[int, list[int]] = {}
    for number, link in enumerate(links):
        children.setdefault(link.parent, []).append(number)
    joints = {-1: 0}
    stack = children[-1][::-1]
    while stack:
        number = stack.pop()
        link = links[number]
        seat = pin.SE3(link.rotation, link.position)
        joints[number] = model.addJoint(joints[link.parent], kinds[link.kind](), seat, link.name)
        inertia = pin.Inertia(link.mass, link.com, link.inertia)
        model.appendBodyToJoint(joints[number], inertia, pin.SE3.Identity())
        stack += children.get(number, [])[::-1]

    q, v, tau = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    forces = pin.StdVec_Force()
    forces.append(pin.Force.Zero())
    by_joint = {joint: number for number, joint in joints.items()}
    placed = place(links)
    for joint in range(1, model.njoints):
        number = by_joint[joint]
        link, R = links[number], placed[number].rotation
        forces.append(pin.Force(R.T @ link.force, R.T @ link.torque))
        at_q, at_v = model.joints[joint].idx_q, model.joints[joint].idx_v
        # Pinocchio's quaternions end with their real part.
        q[at_q : at_q + len(link.q)] = np.roll(link.q, -1)
        v[at_v : at_v + len(link.v)] = link.v
        tau[at_v] = link.load or 0.0

    def prepare() -> Callable[[], Any]:
        data = model.createData()

        def run() -> Any:
            a = pin.aba(model, data, q, v, tau, forces)
            pin.forwardKinematics(model, data, q, v, a)
            frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
            answer = {}
            for number, link in enumerate(links):
                motion = pin.getClassicalAcceleration(model, data, joints[number], frame)
                answer[link.name] = [*map(float, motion.linear), *map(float, motion.angular)]
            return answer

        return run

    return prepare


def _works() -> dict[str, Callable[[float], Prepare]]:
    works: dict[str, Callable[[float], Prepare]] = {"tree_robot": prepare_tree}
    for name in WORKS:
        works[name] = partial(prepare_plant, name, check=False)
        works[f"check_{name}"] = partial(prepare_plant, name, check=True)
    return works


if __name__ == "__main__":
    serve("pinocchio", _works(), "pin")
