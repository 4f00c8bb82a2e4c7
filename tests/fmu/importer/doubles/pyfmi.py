"""The part of PyFMI's interface that the backend uses, implemented with FMPy.

PyFMI has no wheels and needs compilers and libraries to be built. This double has the names, the
arguments and the results that PyFMI 3.0 documents for co-simulation FMUs of FMI 2.0: `do_step`
returns the status instead of raising, all others raise FMUException, and `get` returns an array for
each name. `tests/peers/test_pyfmi.py` runs the real one.
"""

import shutil

import numpy as np


class FMUException(Exception):
    """PyFMI's error."""


def load_fmu(fmu, log_file_name="", kind="auto", log_level=4, allow_unzipped_fmu=False):
    """Return an instance."""
    assert kind == "CS"
    return FMUModelCS2(fmu)


class FMUModelCS2:
    """An instance of a co-simulation FMU."""

    def __init__(self, path):
        from fmpy import extract, read_model_description
        from fmpy.fmi2 import FMU2Slave

        self._folder = extract(path)
        model = read_model_description(path, validate=False)
        self._variables = {v.name: v for v in model.modelVariables}
        self._slave = FMU2Slave(
            guid=model.guid,
            unzipDirectory=self._folder,
            modelIdentifier=model.coSimulation.modelIdentifier,
            instanceName="double",
        )
        self._slave.instantiate()
        self.time = None

    def __del__(self):
        self._slave.freeInstance()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _call(self, function, *arguments):
        try:
            return function(*arguments)
        except Exception as error:
            raise FMUException(str(error)) from error

    def setup_experiment(
        self,
        tolerance_defined=True,
        tolerance="Default",
        start_time="Default",
        stop_time_defined=False,
        stop_time="Default",
    ):
        self._call(
            self._slave.setupExperiment, tolerance if tolerance_defined else None, start_time
        )

    def enter_initialization_mode(self):
        self._call(self._slave.enterInitializationMode)

    def exit_initialization_mode(self):
        self._call(self._slave.exitInitializationMode)

    def terminate(self):
        self._call(self._slave.terminate)

    def set(self, variable_name, value):
        variable = self._variables[variable_name]
        kind = {"Real": float, "Integer": int, "Boolean": bool, "String": str}[variable.type]
        put = getattr(self._slave, f"set{variable.type}")
        self._call(put, [variable.valueReference], [kind(value)])

    def get(self, variable_name):
        if isinstance(variable_name, str):
            variable = self._variables[variable_name]
            read = getattr(self._slave, f"get{variable.type}")
            return np.array(self._call(read, [variable.valueReference]))
        return [self.get(name) for name in variable_name]

    def do_step(self, current_t, step_size, new_step=True):
        self.time = current_t + step_size
        library = self._slave.dll
        return int(
            library.fmi2DoStep(
                self._slave.component, _double(current_t), _double(step_size), int(new_step)
            )
        )

    def get_boolean_status(self, status_kind):
        return self._call(self._slave.getBooleanStatus, status_kind)

    def get_real_status(self, status_kind):
        return self._call(self._slave.getRealStatus, status_kind)

    def get_fmu_state(self, state=None):
        return self._call(self._slave.getFMUstate)

    def set_fmu_state(self, state):
        self._call(self._slave.setFMUstate, state)

    def free_fmu_state(self, state):
        self._call(self._slave.freeFMUstate, state)


def _double(value):
    from ctypes import c_double

    return c_double(value)
