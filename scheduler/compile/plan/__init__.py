"""The plan: its tables, its bytes, its description, its schedule."""
