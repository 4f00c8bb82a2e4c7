"""Public names of 0.1 that have another name now.

A renamed class is still found under its old name, and a renamed keyword or option is still
accepted, each with a warning: see _deprecation.py. Other names (keys of a binding, parameters,
ports) are errors that name the new one: see `errors.suggest`.
"""

from __future__ import annotations

from collections.abc import Sequence

RENAMED_PUBLIC: dict[str, dict[str, str]] = {
    "biella.blocks": {
        "Outside": "ExternalInput",
        "TiltedShortBearing": "MisalignedShortBearing",
    },
    "biella.blocks.bearings": {"TiltedShortBearing": "MisalignedShortBearing"},
    "biella.blocks.multibody": {
        "Driver": "JointDriver",
        "Rubbing": "JointFriction",
        "Stop": "EndStop",
    },
    "biella.devices": {"Driver": "DeviceDriver", "Relay": "UdpProxy"},
}
"""Classes, by the module that exports them."""

RENAMED_OPTIONS = {
    "--grace": "--warmup-ticks",
    "--tolerated": "--max-overruns",
    "--tolerated-in-a-row": "--max-consecutive-overruns",
}
"""Options of the command line."""

RENAMED_NAMES = {
    "double": "precision",
    "grace": "warmup_ticks",
    "hold": "extrapolation",
    "kutzbach": "mobility",
    "numbers": "parameters",
    "own_step": "has_internal_solver",
    "place": "location",
    "schedule_places": "schedule_breakpoints",
    "stays": "export_blocker",
    "takes_slopes": "takes_input_derivatives",
    "tolerated": "max_overruns",
    "tolerated_in_a_row": "max_consecutive_overruns",
}
"""Keys of bindings, parameters, attributes: the last part of a path."""


def renamed_name(name: str, valid: Sequence[str]) -> str:
    """Return the present name of a name of 0.1 if it is among the valid ones, else nothing."""
    head, dot, last = name.rpartition(".")
    new = RENAMED_NAMES.get(last.partition("[")[0])
    if new is None:
        return ""
    whole = head + dot + new
    return whole if whole in valid else ""
