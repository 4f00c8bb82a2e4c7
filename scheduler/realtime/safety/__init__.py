"""Safe values whatever happens: watchdog, signals, latch, the guard outside of the process."""
