"""Changes of a diagram in the user's Python file: what can be changed, and how it is written.

`_structure` is what a diagram is made of, `_source` where it is in the file, `_reader` finds
that, `_rewrite` changes the text, `_editor` checks the change and writes the
file, `_offer` is what a session has of it.
"""
