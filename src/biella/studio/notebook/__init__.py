"""The studio in notebooks: `show`, the widget, and the way of its messages."""
