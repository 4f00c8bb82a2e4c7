"""How a diagram becomes a picture: looks, layout, wires. ``draw.py`` draws it."""
