"""Rows of joints against the printed formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biella.blocks.multibody.equations._euler_parameters import transformations
from biella.blocks.multibody.reference_formulations import (
    EulerModel,
)
from biella.blocks.multibody.system._rotations import skew

from ..reference_formulations.formulation_cases import jointed


def test_base_rows_against_the_printed_formulas() -> None:
    """Rows and γ of S, d1, d2 and SS as printed by Vita (errata applied), with 2 G for π."""
    s = jointed("cylindrical", False)
    s.spherical("ball", s["a.m"], s["b.m"])  # type: ignore[arg-type]
    s.distance("rod", s["a.m"], s["b.m"], length=1.0)  # type: ignore[arg-type]
    marker: Any = s["a.m"]
    object.__setattr__(marker, "motion", {})
    model = EulerModel(s)
    rng = np.random.default_rng(5)
    q = model.q0 + 0.1 * rng.normal(size=14)
    q[3:7] /= np.linalg.norm(q[3:7])
    q[10:14] /= np.linalg.norm(q[10:14])
    v = rng.normal(size=14)
    for p, rate in ((q[3:7], v[3:7]), (q[10:14], v[10:14])):
        rate -= p * (p @ rate)
    e, g = transformations(np.array([q[3:7], q[10:14]]))
    a_i, a_j = e @ g.transpose(0, 2, 1)
    w_i, w_j = (2 * g[0] @ v[3:7], 2 * g[1] @ v[10:14])
    r_i, r_j, v_i, v_j = q[:3], q[7:10], v[:3], v[7:10]
    joint: Any = s["joint"]
    s_i = joint.first.position - joint.first.body.com
    s_j = joint.second.position - joint.second.body.com
    f_i, h_j = joint.frame_i[:, 0], joint.frame_j[:, 2]
    d = r_j + a_j @ s_j - r_i - a_i @ s_i
    d_v = v_j + a_j @ skew(w_j) @ s_j - v_i - a_i @ skew(w_i) @ s_i
    ji = a_j.T @ a_i
    wi, wj = skew(w_i), skew(w_j)
    rows = {
        "joint: d1(f_i, h_j)": (
            [np.zeros(3), -h_j @ ji @ skew(f_i), np.zeros(3), -f_i @ ji.T @ skew(h_j)],
            -h_j @ (ji @ wi @ wi + wj @ wj @ ji) @ f_i + 2 * w_j @ skew(h_j) @ ji @ skew(f_i) @ w_i,
        ),
        "joint: d2(f_i, d)": (
            [
                -f_i @ a_i.T,
                f_i @ skew(s_i) - d @ a_i @ skew(f_i),
                f_i @ a_i.T,
                -f_i @ a_i.T @ a_j @ skew(s_j),
            ],
            2 * w_i @ skew(f_i) @ a_i.T @ (v_i - v_j)
            + 2 * s_j @ wj @ ji @ wi @ f_i
            - s_i @ wi @ wi @ f_i
            - s_j @ wj @ wj @ ji @ f_i
            - d @ a_i @ wi @ wi @ f_i,
        ),
        "ball: S z": (
            [-np.eye(3)[2], (a_i @ skew(s_i))[2], np.eye(3)[2], -(a_j @ skew(s_j))[2]],
            (a_i @ wi @ wi @ s_i - a_j @ wj @ wj @ s_j)[2],
        ),
        "rod: SS": (
            [-2 * d, 2 * d @ a_i @ skew(s_i), 2 * d, -2 * d @ a_j @ skew(s_j)],
            -2 * d_v @ d_v - 2 * d @ (a_j @ wj @ wj @ s_j - a_i @ wi @ wi @ s_i),
        ),
    }
    found = model.evaluate(0.0, q, v)
    for name, ((ri, pi, rj, pj), gamma) in rows.items():
        k = model.row_names.index(name)
        expected = np.concatenate([ri, 2 * pi @ g[0], rj, 2 * pj @ g[1]])
        assert found.jacobian[k] == pytest.approx(expected, abs=1e-12)
        assert found.gamma[k] == pytest.approx(gamma, abs=1e-11)
