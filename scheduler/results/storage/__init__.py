"""Files of results: changes that take effect together, checksums, versions of the layout."""
