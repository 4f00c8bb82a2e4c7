"""What happened in a run: located events, states of machines, captures of Trigger blocks."""
