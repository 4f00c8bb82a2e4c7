"""Parts of blocks: ports, parameters, units, formulas, and the contract with the engine."""
