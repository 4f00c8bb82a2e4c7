"""What a notebook shows of diagrams, plans, results, reports, linear models and sweeps."""
