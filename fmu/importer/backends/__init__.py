"""FMUs that are called from Python: through FMPy, PyFMI, or in a process of their own."""
