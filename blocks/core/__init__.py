"""What blocks are made of: ports, parameters, units, formulas, and the contract with the engine."""
