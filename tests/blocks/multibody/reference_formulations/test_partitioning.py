"""Coordinate partitioning."""

from __future__ import annotations

from biella.blocks.multibody import mechanisms
from biella.blocks.multibody.reference_formulations import (
    run,
)


def test_partition_keeps_constraints_closed() -> None:
    for by in ("lu", "qr"):
        done = run(
            mechanisms.slider_crank(),
            f"partitioning {by}",
            step=2e-2,
            until=1.2,
            integrator="rk4",
            projection="partition",
        )
        assert done.stable, done.reason
        assert done.error <= 1e-12
        assert done.rate_residual.max() < 1e-10
        # The crank turns more than half round: one choice of coordinates does not last.
        assert 1 < done.memory["partitions"] < 60
