"""What `diagram.py` and `fmu.py` run in biella and in C."""
