"""Preflight: checks of a compiled diagram before it runs, some of which run parts of it.

`warn_of_steps` checks the step and solver of every block; for a mechanism with
springs or contacts the fastest mode is computed, for which it is started alone in an engine.

`warn_of_reactions` starts a diagram with mechanisms and reads what they found odd.

`warn_of_unstable_coupling` finds steps that are too long for a stiff block. A block such as an oil
film that
is exchanged in steps too long for it makes any small difference grow from tick to tick, long before
anything explodes; or its outputs ring. Two short runs from the start are compared, one of them with
a parameter of the block a little off. Only runs are checked like this; compiling, exporting and
linearizing are not.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...blocks.core._stiffness import MULTIRATE_RK4
from ...errors import BiellaError, BiellaWarning, BlockError
from ..compile._model import Model
from ..compile.coupling._coupling_options import ITERATED
from ..compile.plan._plan import Plan
from ..engine._engine import DIAGNOSTIC_RUN, Instance
from ..engine._library import contract

_PERTURBATION = 1e-8
TICKS = 100
_GROWN = 1e5
"""What a difference grows by in so few ticks only if steps are too long."""
_TURNS, _LEAST, _KEPT = 0.8, 1e-4, 0.5
"""Ringing: the bend of a signal turns round at so many ticks, with so large a part of the signal's
size, and so much of it is kept from the first half to the second. No resolved motion does that."""

Array = npt.NDArray[np.float64]


def warn_of_steps(model: Model, stacklevel: int = 1) -> None:
    """Warn of blocks that would run badly with their step, solver or connections."""
    steps = [max(rate.period, 1) * model.step for rate in model.rates]
    if model.multirate:
        for number, item in enumerate(model.flat.blocks):
            if item.path in model.multirate["blocks"]:
                steps[number] /= model.multirate["substeps"]
    control = np.frombuffer(model.sections["SOLV"], dtype="<f8")
    solver = "" if control[contract.BL_CONTROL_RELATIVE] > 0.0 else model.solver
    fast = model.multirate.get("blocks", ())
    slow = MULTIRATE_RK4 if fast and solver == "rk4" else solver
    texts = [
        (item, item.block.warn_of_step(step, solver if item.path in fast else slow))
        for item, step in zip(model.flat.blocks, steps, strict=True)
    ]
    for item in model.flat.blocks:
        pairs = zip(
            item.block.inputs, item.sources, strict=False
        )  # inputs at the end may have none
        connected = [port.name for port, source in pairs if source is not None]
        texts.append((item, item.block.warn_of_connections(connected)))
    for item, text in texts:
        if text:
            told = f"`{item.path}` ({item.block}): {text}"
            warnings.warn(told, BiellaWarning, stacklevel=stacklevel + 1)


def warn_of_reactions(plan: Plan, stacklevel: int = 1) -> None:
    """Warn of outputs of mechanisms that are not unique, as a run would at its end."""
    if plan.external or all(block.type != "Plant" for block in plan.blocks):
        return
    try:
        with Instance(plan) as instance:
            instance.initialize()
            instance.warn(DIAGNOSTIC_RUN, stacklevel=stacklevel + 1)
    except BlockError:  # it may start with other parameters; a run says why it does not
        return


def warn_of_unstable_coupling(
    plan: Plan, ticks: int, parameters: Mapping[str, Any] | None = None, stacklevel: int = 2
) -> None:
    """Warn of each stiff block that is exchanged in steps too long for it.

    Parameters
    ----------
    ticks
        Of the run that follows: it is not looked farther ahead.
    parameters
        With which that run starts.
    stacklevel
        Of the warning.
    """
    stiff = plan.stiff if isinstance(plan, Model) else {}
    for info in plan.blocks if stiff and ticks > 1 else ():
        if info.path not in stiff:
            continue
        parameter, output = (f"{info.path}.{name}" for name in stiff[info.path])
        try:
            sign = _find_sign(plan, parameter, output, min(ticks, TICKS), parameters or {})
        except BiellaError:  # the run reports the cause
            continue
        if sign:
            text = (
                f"`{info.path}` ({info.type}) is stiff, and the step of {plan.step:g} s is too "
                f"long for the exchange of its inputs and outputs: {sign}. Use a smaller step; "
                f"for a plant with an internal solver, use d.couple(plant, method='newton'); "
                f"or model the film inside the mechanism with System.bearing(…)."
            )
            warnings.warn(text, BiellaWarning, stacklevel=stacklevel + 1)


def _find_sign(
    plan: Plan, parameter: str, output: str, ticks: int, parameters: Mapping[str, Any]
) -> str:
    """Return the sign of too long steps, or an empty text."""
    exact, perturbed = (
        _record(plan, parameter, output, part, ticks, parameters) for part in (0.0, _PERTURBATION)
    )
    count = min(len(exact), len(perturbed))
    largest = np.abs(exact).max()
    if largest == 0.0:
        return ""
    so_far = np.maximum.accumulate(np.abs(exact[:count]).max(axis=1))
    apart = np.abs(perturbed[:count] - exact[:count]).max(axis=1)
    size = np.divide(apart, so_far, out=np.zeros(count), where=so_far > 0.0)
    if size.max() > _GROWN * _PERTURBATION:
        last = int(size.argmax())
        growth = (size[last] / _PERTURBATION) ** (1.0 / max(last, 1))
        return (
            f"a small perturbation grows {growth:.2g} times in each step, and the results "
            f"are invalid"
        )
    if count <= ticks and so_far[-1] > 1e3 * so_far[0]:
        return "its outputs grow until the run ends, and the results are invalid"
    # An iterated exchange is trapezoidal: it rings after a jump, and the ringing dies away.
    iterated = any(item["method"] in ITERATED for item in plan.couplings)
    if not iterated and any(_rings(signal) for signal in exact.T / largest):
        return "its outputs oscillate from tick to tick, and the results are not reliable"
    return ""


def _rings(signal: Array) -> bool:
    bend = np.diff(signal, 2)
    early, late = np.abs(np.array_split(bend, 2)[0]), np.abs(np.array_split(bend, 2)[1])
    if bend.size < TICKS // 2 or np.mean(bend[1:] * bend[:-1] < 0.0) < _TURNS:
        return False
    return bool(late.mean() > _LEAST and late.mean() > _KEPT * early.mean())


def _record(
    plan: Plan,
    parameter: str,
    output: str,
    perturbation: float,
    ticks: int,
    parameters: Mapping[str, Any],
) -> Array:
    """Return an output over the first ticks, as far as they go."""
    port = plan.find_signal(output)
    rows: list[Array] = []
    with Instance(plan) as instance:
        for path, value in parameters.items():
            instance.set(path, value)
        instance.set(parameter, instance.get(parameter) * (1.0 + perturbation))
        try:
            instance.initialize()
            for _ in range(ticks + 1):
                instance.evaluate()
                rows.append(instance.values[port.slot : port.slot + port.width].copy())
                instance.run(1)
        except BiellaError:
            if len(rows) < 2:
                raise
    return np.array(rows)
