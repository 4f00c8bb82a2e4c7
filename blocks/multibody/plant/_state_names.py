"""Names of the states of a mechanism: coordinates and speeds of the joints of its tree."""

from __future__ import annotations

from ..joints._joint import BALL, SLIDE, TURN
from ._initial import coordinate_name
from ._tree import COORDINATES, SPEEDS, Link, Tree


def name_states(tree: Tree) -> tuple[str, ...]:
    """Return a name for each coordinate, then for each speed, in the order of the engine.

    A name is that of the joint's output, such as ``hinge.angle`` and ``hinge.speed``, with a minus
    where the tree runs through the joint from its second body to its first. The rotations of a ball
    are the Euler parameters of ``joint.rotation`` and the speeds ``joint.angular_velocity``; a body
    that no joint holds has its ``position``, ``velocity`` and rotations.
    """
    q, v = [""] * tree.nq, [""] * tree.nv
    for chain in _chains(tree):
        joint = chain[0].base[0] if chain[0].base is not None else None
        body = chain[-1].body
        owner = joint.name if joint is not None else body.name if body is not None else ""
        slid = 0
        for link in chain:
            for k in range(COORDINATES[link.type]):
                q[link.q + k] = f"{owner}.{_COORDINATE[link.type].format(k=k, slid=slid)}"
            for k in range(SPEEDS[link.type]):
                v[link.v + k] = f"{owner}.{_SPEED[link.type].format(k=k, slid=slid)}"
            slid += link.type == SLIDE
        if joint is None:
            continue
        for number in range(len(joint.coordinates)):
            place = tree.coordinates[joint.name, number]
            sign = "-" if place.sign < 0 else ""
            name = coordinate_name(joint, number)
            q[place.q] = f"{sign}{joint.name}.{name}"
            speed = "speed" if len(joint.coordinates) == 1 else f"{name}_speed"
            v[place.v] = f"{sign}{joint.name}.{speed}"
    return (*q, *v)


_COORDINATE = {SLIDE: "position[{slid}]", TURN: "angle", BALL: "rotation[{k}]"}
_SPEED = {
    SLIDE: "velocity[{slid}]",
    TURN: "angular_velocity",
    BALL: "angular_velocity[{k}]",
}


def _chains(tree: Tree) -> list[list[Link]]:
    """Return the links joint by joint: the last link of each carries a body."""
    chains: list[list[Link]] = [[]]
    for link in tree.links:
        chains[-1].append(link)
        if link.body is not None:
            chains.append([])
    return chains[:-1]
