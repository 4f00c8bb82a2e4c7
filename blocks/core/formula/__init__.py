"""Formulas: parsed in Python, evaluated by a stack machine in C."""
