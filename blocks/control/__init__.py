"""Controllers, observers, compensators, and motions to be followed."""

from .compensators import LeadLag, Notch
from .design import LQG, Estimator, Regulator, add_integral, dlqe, dlqr, lqe, lqg, lqr
from .feedback import StateFeedback
from .observer import KalmanFilter
from .pid import PID
from .tracking import LQTracking
from .trajectories import Cam, CamLaw, MinimumJerk, SCurve, Trapezoid
from .tuner import RelayTuner

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
