"""Formulations of multibody dynamics: reference implementations, slow and easy to read.

It shares nothing with the engine's kernel but the description of the mechanism, and is its oracle.
Two sets of spatial coordinates (`natural`, `euler_parameters`) and one of planar ones (`planar`)
give the same `model`; every method is one file with the same function,
``accelerations(model, t, q, v, memory, **options) -> (q̈, λ)``.
"""

from ....errors import FormulationError
from ..equations._assembly import assemble, consistent_velocity
from ..equations._euler_parameters import EulerModel
from ..equations._model import AbstractModel, Equations, JointReaction
from ..equations._planar import PlanarModel
from ..equations._projections import project_position, project_velocity
from ..equations._redundancy import RedundancyReport, report_redundancy
from ._comparison import OLDANI, Comparison, compare
from ._natural import NaturalModel
from ._runs import INDEX_3, METHODS, QTZ_INDEPENDENT, Run, make_model, run

__all__ = [
    "INDEX_3",
    "METHODS",
    "OLDANI",
    "QTZ_INDEPENDENT",
    "AbstractModel",
    "Comparison",
    "Equations",
    "EulerModel",
    "FormulationError",
    "JointReaction",
    "NaturalModel",
    "PlanarModel",
    "RedundancyReport",
    "Run",
    "assemble",
    "compare",
    "consistent_velocity",
    "make_model",
    "project_position",
    "project_velocity",
    "report_redundancy",
    "run",
]
