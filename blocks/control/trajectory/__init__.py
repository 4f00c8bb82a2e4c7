"""Reference trajectories: S-curves, trapezoids, cams."""
