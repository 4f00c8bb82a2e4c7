"""Sources: signals in closed form, noise, and recorded signals."""
