"""Calls from a package into one that depends on it: the only upward calls in biella.

Imports run one way, blocks ← scheduler ← fmu. But a mechanism that searches for its fastest
motion needs an engine, a state machine is drawn by what draws diagrams, and a binding that names an
FMU has to open it. Such services are looked up here by name. This module maps each name to its
implementation and imports it at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PROVIDERS = {
    "compile_alone": "scheduler.run._alone",
    "AsynchronousModel": "scheduler.realtime._asynchronous_model",
    "Fmu": "fmu.importer._fmu",
    "Result": "scheduler.results._result",
    "draw_statechart": "scheduler.drawing.statechart._draw_statechart",
}
"""Name of each service, and the module that has it."""


def find_service(name: str) -> Any:
    """Return a function or class by name.

    - ``compile_alone(block, path, inputs)``: the model of a block alone, which can be started.
    - ``AsynchronousModel(what, period)``: a model that computes beside a run.
    - ``Fmu(path, …)``: an FMU as a block.
    - ``Result(columns, signals, …)``: recorded signals; ``Result.from_hdf5`` reads a file.
    - ``draw_statechart(machine, path, …)``: the picture of a state machine.
    """
    return getattr(import_module(f"{__package__}.{_PROVIDERS[name]}"), name)
