"""Pictures of mechanisms: poses, views, strokes, the scene and its labels."""
