"""A robot from a URDF file against Pinocchio, which reads the same file by its own parser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from biella import Diagram
from biella.blocks.multibody import System
from biella.blocks.multibody.analysis._manifold import make_manifold, split
from biella.blocks.multibody.system._rotations import rotation_from_quaternion, skew

pytestmark = [pytest.mark.engine, pytest.mark.slow]

Array = NDArray[np.float64]
ARM = Path(__file__).parents[1] / "blocks" / "multibody" / "urdf" / "arm.urdf"
GRAVITY = (1.0, -2.0, -9.81)
SMOOTHING = 0.5
"""As slow as the joints are, so that friction is far from all or nothing."""
OPTIONS: Any = {"gravity": GRAVITY, "smoothing_speed": SMOOTHING}
SINGLE = ("shoulder", "elbow", "extend", "pitch", "yaw")
LINKS = {
    name: name for name in ("pedestal", "upper", "forearm", "ram", "cross", "hand", "puck")
} | {"tool": "hand.tool", "plate": "pedestal.plate"}


def draw_motion(seed: int) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return positions and velocities by joint, as `System.from_urdf` takes them."""
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=4)
    turn /= np.linalg.norm(turn)
    q = {name: rng.uniform(-2.0, 2.0, size=1) for name in SINGLE}
    q |= {"slide_about": rng.uniform(-1, 1, size=3), "drift": np.r_[rng.normal(size=3), turn]}
    v = {name: rng.normal(size=1) for name in SINGLE}
    v |= {"slide_about": rng.normal(size=3), "drift": rng.normal(size=6)}
    return q, v


def plane(angle: float) -> Array:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


class Peer:
    """Pinocchio's model at the same positions and velocities."""

    def __init__(
        self,
        positions: dict[str, Array],
        velocities: dict[str, Array],
        path: Path = ARM,
        base: str = "fixed",
    ) -> None:
        import pinocchio as pin

        self.pin = pin
        root = [pin.JointModelFreeFlyer()] if base == "free" else []
        self.model: Any = pin.buildModelFromUrdf(str(path), *root)
        self.model.gravity.linear = np.array(GRAVITY)
        self.data = self.model.createData()
        self.q, self.v = pin.neutral(self.model), np.zeros(self.model.nv)
        for name, x in positions.items():
            number = self.model.getJointId("root_joint" if name == "pedestal" else name)
            joint, rate = self.model.joints[number], velocities[name]
            q: list[float]
            if joint.nq == 1:
                q = [*x]
            elif joint.nv == 1:
                q = [np.cos(x[0]), np.sin(x[0])]
            elif name == "slide_about":
                # Velocities of wide joints are in axes of the child.
                q = [*x[:2], np.cos(x[2]), np.sin(x[2])]
                rate = np.r_[plane(x[2]).T @ rate[:2], rate[2]]
            else:
                q = [*x[:3], *x[4:], x[3]]
                turn = rotation_from_quaternion(x[3:])
                rate = np.r_[turn.T @ rate[:3], turn.T @ rate[3:]]
            self.q[joint.idx_q : joint.idx_q + joint.nq] = q
            self.v[joint.idx_v : joint.idx_v + joint.nv] = rate

    def accelerations(self) -> dict[str, Array]:
        """Return those of every link, with the friction that Pinocchio found in the file."""
        pin, model, data = self.pin, self.model, self.data
        dry = model.upperDryFrictionLimit
        assert model.damping.any() and dry.any()
        tau = -model.damping * self.v - dry * np.tanh(self.v / SMOOTHING)
        vd = pin.aba(model, data, self.q, self.v, tau)
        pin.forwardKinematics(model, data, self.q, self.v, vd)
        pin.updateFramePlacements(model, data)
        aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        found = {}
        for link, path in LINKS.items():
            motion = pin.getFrameClassicalAcceleration(model, data, model.getFrameId(link), aligned)
            found[f"{path}.acceleration"] = motion.linear
            found[f"{path}.angular_acceleration"] = motion.angular
        return found


def see(system: System, paths: list[str]) -> dict[str, Array]:
    diagram = Diagram("arm", step=1e-3)
    diagram.add(system.block(outputs=paths), name="plant")
    with diagram.compile().instantiate() as instance:
        return {path: np.array(instance.get(f"plant.{path}")) for path in paths}


@pytest.mark.parametrize("seed", range(5))
def test_the_accelerations_of_every_link_are_pinocchios(seed: int) -> None:
    q, v = draw_motion(seed)
    compare(Peer(q, v), System.from_urdf(ARM, positions=q, velocities=v, **OPTIONS))


@pytest.mark.parametrize("seed", range(5))
def test_so_they_are_with_a_base_that_flies(tmp_path: Path, seed: int) -> None:
    text = ARM.read_text().replace('<link name="world"/>', "")
    path = tmp_path / "flying.urdf"
    path.write_text(re.sub(r'<joint name="drift".*?</joint>', "", text, flags=re.DOTALL))
    q, v = draw_motion(seed)
    for motion in (q, v):
        motion["pedestal"] = motion.pop("drift")
    system = System.from_urdf(path, base="free", positions=q, velocities=v, **OPTIONS)
    compare(Peer(q, v, path, "free"), system)


def compare(peer: Peer, system: System) -> None:
    expected = peer.accelerations()
    seen = see(system, list(expected))
    size = max(np.abs(value).max() for value in expected.values())
    assert size > 10.0
    for path, value in expected.items():
        assert seen[path] == pytest.approx(value, rel=0, abs=1e-10 * size), path


def compute_mass_matrix(system: System, peer: Peer, q: dict[str, Array]) -> Array:
    """Return M in Pinocchio's speeds, of the redundant equations and the joints' own Jacobians."""
    model = make_manifold(system)
    assembly = system.assemble()
    place, still = assembly.coordinates, np.zeros(model.size)
    e = model.equations(0.0, place, still)
    free = split(e.jacobian)[1]
    rows = np.zeros((peer.model.nv, model.size))
    moving = model.coordinates(0.0, place, still, still)
    for name in q:
        at = peer.model.joints[peer.model.getJointId(name)].idx_v
        if name == "drift":
            body = next(one for one in system.bodies if one.name == "pedestal")
            axes, k = assembly["pedestal"].rotation, 6 * body.index
            # u has the velocity of the center of mass, which is not the origin of the frame.
            rows[at : at + 3, k : k + 3] = axes.T
            rows[at : at + 3, k + 3 : k + 6] = axes.T @ skew(axes @ body.com)
            rows[at + 3 : at + 6, k + 3 : k + 6] = axes.T
        elif name == "slide_about":
            wide = np.array([moving[name, n].jacobian for n in range(3)])
            rows[at : at + 2] = plane(q[name][2]).T @ wide[:2]
            rows[at + 2] = wide[2]
        else:
            rows[at] = moving[name, 0].jacobian
    motions = free @ np.linalg.inv(rows @ free)
    return np.asarray(motions.T @ e.mass @ motions)


@pytest.mark.parametrize("seed", range(5))
def test_the_mass_matrix_is_pinocchios(seed: int) -> None:
    q, v = draw_motion(seed)
    peer = Peer(q, v)
    upper = np.triu(peer.pin.crba(peer.model, peer.data, peer.q))
    expected = upper + np.triu(upper, 1).T
    found = compute_mass_matrix(System.from_urdf(ARM, positions=q), peer, q)
    assert found == pytest.approx(expected, rel=0, abs=1e-10 * np.abs(expected).max())
