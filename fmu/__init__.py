"""FMUs: export of diagrams and mechanisms, import of those of other tools."""

from typing import TYPE_CHECKING

from .._lazy import attach

if TYPE_CHECKING:
    from .exporter._export import export_fmu
    from .exporter._mechanism import export_system
    from .importer._fmu import Fmu
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            ".exporter._export": ("export_fmu",),
            ".exporter._mechanism": ("export_system",),
            ".importer._fmu": ("Fmu",),
        },
    )

__all__ = ["Fmu", "export_fmu", "export_system"]
