"""How a diagram becomes a picture: looks, layout, wires. ``_draw.py`` draws it."""
