"""The host computer: what it can do in real time, and the privileges of a run."""
