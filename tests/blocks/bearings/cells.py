"""The cells of a finite film as numpy writes them: another hand's account of what C solves."""

from __future__ import annotations

import numpy as np

from biella.blocks.bearings import Hole

R, C, MU = 0.02, 2e-5, 0.03


def hold(cells, length, feeds):
    """Pressure of each cell that a feed covers, NaN elsewhere: (i, j) at i n_z + j."""
    n, m = cells
    theta, z = (np.arange(n) + 0.5) * 2 * np.pi / n, (np.arange(m) + 0.5) * length / m
    held = np.full(cells, np.nan)
    for feed in feeds:
        across = np.abs(np.remainder(theta - feed.angle + np.pi, 2 * np.pi) - np.pi)
        along = np.abs(z - (length / 2 if feed.z is None else feed.z))
        i, j = across.argmin(), along.argmin()
        if isinstance(feed, Hole):
            covered = np.hypot(R * across[:, None], along) <= feed.diameter / 2
            covered[i, j] = True
        else:
            around = across <= feed.width / 2
            beside = along <= (length if feed.length is None else feed.length) / 2
            around[i] = beside[j] = True
            covered = np.outer(around, beside)
        held[covered] = feed.pressure
    return held.ravel()


def assemble(cells, length, position, velocity, omega, held, bush=None):
    """A and f of A q = f with q in (r/c)² 6 μ, cell (i, j) at i n_z + j; and the cells' places.

    Edges of cells that are held lie half as far from their neighbors' middles.
    """
    n, m = cells
    dt, dz = 2 * np.pi / n, 1 / m
    theta, zeta = (np.arange(n) + 0.5) * dt, (np.arange(m) + 0.5) * dz

    def along(pair, z):
        return (pair[:2] + (pair[2:] - pair[:2]) * z) / C

    def film(angle, z):
        x, y = along(position, z)
        more = 0.0 if bush is None else bush(np.asarray(angle), np.asarray(z * length))
        return 1 - x * np.cos(angle) - y * np.sin(angle) + more / C

    A, f = np.zeros((n * m, n * m)), np.zeros(n * m)
    for i in range(n):
        for j in range(m):
            k = i * m + j
            vx, vy = along(velocity, zeta[j])
            # Exact means over the cell: of ∂θ H from its faces, of ∂t H by integration.
            faces = np.array([theta[i] - dt / 2, theta[i] + dt / 2])
            wedge = np.diff(film(faces, zeta[j]))[0] / dt
            rate = -(vx * np.diff(np.sin(faces)) - vy * np.diff(np.cos(faces)))[0] / dt
            f[k] = -omega * wedge - 2 * rate
            for side, step in ((faces[0], -1), (faces[1], 1)):
                other = (i + step) % n * m + j
                a = film(side, zeta[j]) ** 3 / dt**2
                a *= 1 + (np.isnan(held[k]) != np.isnan(held[other]))
                A[k, k] += a
                A[k, other] -= a
            for edge, step in ((zeta[j] - dz / 2, -1), (zeta[j] + dz / 2, 1)):
                a = film(theta[i], edge) ** 3 * (R / length) ** 2 / dz**2
                if 0 <= j + step < m:
                    a *= 1 + (np.isnan(held[k]) != np.isnan(held[k + step]))
                    A[k, k + step] -= a
                    A[k, k] += a
                else:
                    A[k, k] += 2 * a
    return A, f, theta, zeta
