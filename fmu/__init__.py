"""FMUs: export of diagrams and mechanisms, import of those of other tools."""

from typing import TYPE_CHECKING

from ..lazy import attach

if TYPE_CHECKING:
    from .exporter.export import export_fmu
    from .exporter.mechanism import export_system
    from .importer.fmu import Fmu
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            ".exporter.export": ("export_fmu",),
            ".exporter.mechanism": ("export_system",),
            ".importer.fmu": ("Fmu",),
        },
    )

__all__ = ["Fmu", "export_fmu", "export_system"]
