"""The C engine, how it is built, and its interface to Python."""
