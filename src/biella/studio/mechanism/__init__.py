"""What the studio shows beside the poses of a mechanism: forces, journals, meshes; and pushes."""
