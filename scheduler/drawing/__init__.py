"""How a diagram becomes a picture: looks, layout, wires. `biella.scheduler.draw` draws it."""
