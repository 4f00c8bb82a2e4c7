"""Tolerance studies: variables, Monte Carlo, worst case, root-sum-square, pictures."""
