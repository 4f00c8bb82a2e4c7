"""Card sets of NumDyn3D, read and written."""
