"""The mass matrix: closed form, kinetic energy, inverse dynamics."""

import numpy as np
import pytest

from biella.blocks.multibody import InverseDynamics, MassMatrix

from .arms import branched, evaluate, planar_arm, plant_accelerations

pytestmark = pytest.mark.engine


def test_two_rods_in_a_plane():
    found = evaluate(MassMatrix(planar_arm()), position=[0.4, 0.9])["mass"].reshape(2, 2)
    c = np.cos(0.9)
    expected = [[5 / 3 + c, 1 / 3 + c / 2], [1 / 3 + c / 2, 1 / 3]]
    assert found == pytest.approx(np.array(expected), rel=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_kinetic_energy_of_the_plant(seed):
    rng = np.random.default_rng(seed)
    block = MassMatrix(branched(seed))
    q, v = rng.normal(size=(2, 6))
    mass = evaluate(block, position=q)["mass"].reshape(6, 6)
    assert np.array_equal(mass, mass.T)
    assert np.linalg.eigvalsh(mass).min() > 0.0
    _, (energy,) = plant_accelerations(
        branched(seed), block.coordinates, q, v, np.zeros(6), ["kinetic_energy"]
    )
    assert v @ mass @ v / 2 == pytest.approx(energy, rel=1e-13)


def test_columns_are_efforts_of_unit_accelerations():
    s, q = branched(7), np.linspace(-0.5, 0.5, 6)
    mass = evaluate(MassMatrix(s), position=q)["mass"].reshape(6, 6)
    rest = evaluate(InverseDynamics(s), position=q)["effort"]
    for k, unit in enumerate(np.eye(6)):
        effort = evaluate(InverseDynamics(s), position=q, acceleration=unit)["effort"]
        assert effort - rest == pytest.approx(mass[:, k], abs=1e-12)
