"""Velocities and accelerations where rows are almost dependent."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
import pytest

from biella import BiellaWarning, Diagram, simulate
from biella.blocks.multibody import System
from biella.scheduler.engine._engine import Instance

pytestmark = pytest.mark.engine


def see(system: System, paths: list[str]) -> dict[str, np.ndarray]:
    d = Diagram("look", step=1e-3)
    d.add(system.block(outputs=paths), name="plant")
    with Instance(d.compile()) as instance:
        instance.initialize()
        instance.evaluate()
        return {path: np.array(instance.get(f"plant.{path}")) for path in paths}


def plate_on_struts(slant: float, gravity: float = 0.0, **motion: Any) -> System:
    s = System("plate", (gravity, 0.0), planar=True)
    plate = s.body("plate", mass=2.0, inertia=0.5, position=(0.0, 1.0), free=True, **motion)
    for name, x, lean in (("left", -1.0, 0.0), ("right", 1.0, 0.0), ("middle", 0.3, slant)):
        foot = s.ground.marker(name, (x - np.sin(lean), 1.0 - np.cos(lean)))
        s.distance(name, foot, plate.marker(name, (x, 0.0)), length=1.0)
    return s


@pytest.mark.parametrize("slant", [1e-1, 1e-2, 3e-3, 1e-3, 1e-4])
def test_a_plate_on_three_almost_parallel_struts_starts_at_rest(slant: float) -> None:
    """Two struts are upright, the third is inclined by ε: three rows, no freedom is left.

    Only the third keeps the plate from moving sideways, by sin ε: σ = ε² next to the other
    eigenvalues. Rounding of the rows, 1e-16 of terms of order 1, is amplified by 1 / ε.
    """
    s = plate_on_struts(slant, velocity=(3.0, 0.5), angular_velocity=0.2)
    seen = see(s, ["plate.velocity", "plate.angular_velocity", "closure_rate"])
    assert seen["closure_rate"] < 1e-14
    for path in ("plate.velocity", "plate.angular_velocity"):
        assert np.abs(seen[path]).max() < 1e-14 / slant, path


@pytest.mark.parametrize("slant", [1e-1, 1e-2, 3e-3, 1e-3])
def test_accelerations_converge_where_rows_are_almost_dependent(slant: float) -> None:
    """A sideways load m g: the plate cannot move, and the inclined strut carries m g / sin ε.

    The iteration ends where it would change accelerations by 1e-10 of 1 m/s²; the force is then
    known to that times m / sin² ε, the stiffness of the row against its acceleration.
    """
    s = plate_on_struts(slant, gravity=9.81)
    seen = see(s, ["plate.acceleration", "converged", "middle.force"])
    assert seen["converged"] == 1.0
    assert np.abs(seen["plate.acceleration"]).max() < 1e-9
    force = np.linalg.norm(seen["middle.force"])
    assert force == pytest.approx(2.0 * 9.81 / np.sin(slant), abs=1e-9 * 2.0 / slant**2)


@pytest.mark.filterwarnings("ignore:.*redundant but for:biella.BiellaWarning")
@pytest.mark.parametrize("mode", ["continuous", "internal"])
def test_accelerations_that_do_not_converge_are_reported(
    mode: Literal["continuous", "internal"],
) -> None:
    """σ = 1e-7: the factor of the iteration is near 0.98, and 200 iterations leave 1 % of 9.81."""
    d = Diagram("look", step=1e-3)
    plant = plate_on_struts(3e-4, gravity=9.81).block(
        outputs=["plate.acceleration", "converged"], mode=mode
    )
    d.add(plant, name="plant")
    with pytest.warns(BiellaWarning, match="did not converge in 8 evaluations") as caught:
        result = simulate(d, 0.002)
    (message,) = (str(w.message) for w in caught if "did not converge" in str(w.message))
    assert result["plant.converged"][0] == 0.0
    # The estimate in the message is the true error: the plate cannot move. Relative to 1 m/s².
    wrong = abs(result["plant.plate.acceleration"][:, 0]).max()
    stated = re.search(r"wrong by (\S+) of the largest", message)
    assert stated is not None
    assert float(stated[1]) == pytest.approx(wrong, rel=0.1)
