"""The works in MuJoCo: RK4, a tree of hinges and slides closed by `connect` equalities.

Equalities are springs and dampers in MuJoCo. They are critically damped, as little regularized as
it allows (impedance 0.9999), and `CLOSURE` gives the time constant, its guard (`refsafe`) off.
Shorter ones are stable down to 0.5 ms, but in the slider-crank they close worse, because RK4 at
1 ms does not resolve them: at 2 ms, 8e-6 m; at 0.5 ms, 6e-4 m. One call in C makes all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from mechanisms.measure import Meter, final_points
from mechanisms.plants import (
    STEP,
    WORKS,
    Array,
    Body,
    Joint,
    Plant,
    joint_speeds,
    plant,
    spanning_tree,
)

from peers.process import Prepare, serve

CLOSURE = {"slider_crank": 2e-3, "four_bars": 8e-4}
"""Time constant of the closures in seconds, by the beginning of the work's name."""


def _text(vector: Iterable[float]) -> str:
    return " ".join(repr(float(x)) for x in vector)


FREE = "<freejoint/>"


def _joint(joint: Joint, body: int) -> str:
    at = joint.at_second if joint.second == body else joint.at_first
    kind = "hinge" if joint.kind == "revolute" else "slide"
    return f'<joint type="{kind}" axis="{_text(joint.axis)}" pos="{_text(at)}"/>'


def _moments(made: Plant, body: Body) -> list[float]:
    """Give moments of inertia; MuJoCo takes no zero ones, of rods along them and of a point mass.

    Nothing turns about an axis in the plane here. About the normal next to nothing is added.
    """
    return [
        moment or (1e-12 if normal else 1e-3)
        for moment, normal in zip(body.inertia, made.normal, strict=True)
    ]


def _describe(work: str) -> str:
    """Write the plant of a work as MJCF; bodies nest as the tree does."""
    made = plant(work)
    tree, cuts = spanning_tree(made)
    places = [np.array(body.position) for body in made.bodies] + [np.zeros(3)]

    def nest(base: int) -> str:
        text = ""
        for number, parent, joint_number in tree:
            if parent == base:
                body = made.bodies[number]
                moments = _moments(made, body)
                text += (
                    f'<body name="{body.name}" pos="{_text(places[number] - places[parent])}">'
                    f'<inertial pos="0 0 0" mass="{body.mass!r}" diaginertia="{_text(moments)}"/>'
                    f"{_joint(made.joints[joint_number], number) if joint_number >= 0 else FREE}"
                    f"{nest(number)}</body>"
                )
        return text

    time_constant = next((value for name, value in CLOSURE.items() if work.startswith(name)), 0.0)
    closures = "".join(
        f'<connect body1="{made.bodies[joint.first].name}" body2="{made.bodies[joint.second].name}"'
        f' anchor="{_text(joint.at_first)}" solref="{time_constant!r} 1"'
        ' solimp="0.9999 0.9999 0.001"/>'
        for joint in (made.joints[number] for number in cuts)
    )
    return (
        f'<mujoco><option timestep="{STEP!r}" integrator="RK4" gravity="{_text(made.gravity)}"'
        ' tolerance="1e-12" iterations="50"><flag contact="disable" refsafe="disable"/></option>'
        f"<worldbody>{nest(-1)}</worldbody><equality>{closures}</equality></mujoco>"
    )


def prepare_plant(work: str, seconds: float, check: bool) -> Prepare:
    import mujoco

    made = plant(work)
    model = mujoco.MjModel.from_xml_string(_describe(work))
    numbers = [model.body(body.name).id for body in made.bodies]
    steps = round(seconds / STEP)

    def poses(data: Any) -> tuple[Array, Array]:
        mujoco.mj_kinematics(model, data)
        return data.xpos[numbers], data.xmat[numbers].reshape(-1, 3, 3)

    def look(meter: Meter, data: Any) -> None:
        p, R = poses(data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        # MuJoCo's velocities are at the center of mass of the whole tree.
        w = data.cvel[numbers, :3]
        arm = p - data.subtree_com[model.body_rootid[numbers]]
        meter.see(p, R, data.cvel[numbers, 3:] + np.cross(w, arm), w)

    def prepare() -> Callable[[], Any]:
        data = mujoco.MjData(model)
        for (body, _, joint), speed in zip(spanning_tree(made)[0], joint_speeds(made), strict=True):
            at = model.jnt_dofadr[model.body_jntadr[numbers[body]]]
            if joint >= 0:
                data.qvel[at] = speed
            else:
                start = made.bodies[body]
                data.qvel[at : at + 6] = [*start.velocity, *start.angular_velocity]
        if made.torque:
            data.qfrc_applied[model.jnt_dofadr[model.body_jntadr[numbers[0]]]] = made.torque

        def run() -> Any:
            mujoco.mj_step(model, data, nstep=steps)
            return {"points": final_points(made, *poses(data))}

        def run_checked() -> Any:
            meter = Meter(made)
            look(meter, data)
            for _ in range(steps):
                mujoco.mj_step(model, data)
                look(meter, data)
            return meter.answer(*poses(data))

        return run_checked if check else run

    return prepare


def _works() -> dict[str, Callable[[float], Prepare]]:
    works: dict[str, Callable[[float], Prepare]] = {}
    for name in WORKS:
        works[name] = partial(prepare_plant, name, check=False)
        works[f"check_{name}"] = partial(prepare_plant, name, check=True)
    return works


if __name__ == "__main__":
    serve("mujoco", _works())
