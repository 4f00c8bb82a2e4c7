"""Whether a diagram has a fast part that could take substeps, from its eigenvalues at the start."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eig, eigvals

from ...errors import BiellaError, name_list
from ..compile._model import Model
from ..compile._multirate import STAGES
from ..engine._engine import Instance
from ..engine._growth import differentiate
from ..engine._library import contract

_MOST_STATES = 200
_APART = 10.0
"""How much faster the fast part must be."""
_PARTICIPATES = 0.01
_MOST_SUBSTEPS = 1000


def suggest_substeps(model: Model) -> str:
    """Return which blocks could take substeps, and how many; or nothing.

    States with a part in the fastest modes are fast, by the participation factors |v w| of right
    and left eigenvectors. The eigenvalues of all other states must be ten times slower.
    """
    control = np.frombuffer(model.sections["SOLV"], dtype="<f8")
    if model.multirate or model.external or model.solver not in STAGES:
        return ""
    if control[contract.BL_CONTROL_RELATIVE] > 0.0:
        return ""
    try:
        with Instance(model) as instance, np.errstate(all="ignore"):
            states = int(instance.layout.states)
            if not 1 < states <= _MOST_STATES:
                return ""
            instance.initialize()
            jacobian = differentiate(instance, states)
    except BiellaError:
        return ""
    if not np.isfinite(jacobian).all():
        return ""
    fast, slowest, fastest = _split(jacobian)
    paths = [
        block.path
        for block, first, count in zip(
            model.blocks,
            model.block_records["x_first"],
            model.block_records["x_count"],
            strict=True,
        )
        if fast[first : first + count].any()
    ]
    if not paths or fast.all() or fastest < _APART * slowest:
        return ""
    ratio = int(min(fastest / max(slowest, 1e-300), _MOST_SUBSTEPS))
    return (
        f"{name_list(paths, 6)}: eigenvalues up to |λ| = {fastest:.3g} 1/s at the start, all other "
        f"states up to {slowest:.3g} 1/s. A longer step, with d.integrate(…, substeps=n) for "
        f"these blocks, evaluates the others less often: up to {ratio} times."
    )


def _split(jacobian: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return which states are fast, and the largest |λ| of the others and of all."""
    values, left, right = eig(jacobian, left=True, right=True)
    sizes = np.abs(values)
    part = np.abs(left.conj() * right)
    part /= np.maximum(part.sum(axis=0), 1e-300)
    order = np.sort(sizes)[::-1]
    gaps = order[:-1] / np.maximum(order[1:], 1e-300)
    border = order[int(gaps.argmax())]
    fast = (part[:, sizes >= border * (1.0 - 1e-9)] > _PARTICIPATES).any(axis=1)
    rest = jacobian[np.ix_(~fast, ~fast)]
    slowest = float(np.abs(eigvals(rest)).max()) if rest.size else 0.0
    return fast, slowest, float(sizes.max())
