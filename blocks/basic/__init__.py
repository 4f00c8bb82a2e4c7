"""General blocks: sources, mathematics, logic, tables, dynamics, routing."""
