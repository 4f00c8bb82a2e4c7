"""FMUs: export of diagrams and mechanisms, import of those of other tools."""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from ..blocks.core._exports import Experiment
    from .exporter._export import export_fmu
    from .exporter._mechanism import export_system
    from .importer._fmu import Fmu
    from .importer.backends._strict import IsolationLimits
    from .standards._reference import check_reference
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            ".exporter._export": ("export_fmu",),
            ".exporter._mechanism": ("export_system",),
            ".importer._fmu": ("Fmu",),
            ".importer.backends._strict": ("IsolationLimits",),
            "..blocks.core._exports": ("Experiment",),
            ".standards._reference": ("check_reference",),
        },
    )

__all__ = ["Experiment", "Fmu", "IsolationLimits", "check_reference", "export_fmu", "export_system"]
