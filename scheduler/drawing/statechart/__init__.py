"""Pictures of state machines."""
