"""Controllers, observers, compensators, and motions to be followed."""

from ._compensators import LeadLag, Notch
from ._design import LQG, Estimator, Regulator, add_integral, dlqe, dlqr, lqe, lqg, lqr
from ._feedback import StateFeedback
from ._observer import KalmanFilter
from ._pid import PID
from ._tracking import LQTracking
from ._tuner import RelayTuner
from .trajectory._trajectories import Cam, CamLaw, MinimumJerk, SCurve, Trapezoid

__all__ = [
    "LQG",
    "PID",
    "Cam",
    "CamLaw",
    "Estimator",
    "KalmanFilter",
    "LQTracking",
    "LeadLag",
    "MinimumJerk",
    "Notch",
    "Regulator",
    "RelayTuner",
    "SCurve",
    "StateFeedback",
    "Trapezoid",
    "add_integral",
    "dlqe",
    "dlqr",
    "lqe",
    "lqg",
    "lqr",
]
