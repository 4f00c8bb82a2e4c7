"""Analyses of mechanisms: assembly, kinematics, equilibrium, small motions, stability."""
