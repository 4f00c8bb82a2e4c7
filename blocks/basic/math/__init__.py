"""Functions of the inputs: arithmetic, nonlinearities, tables, formulas."""
