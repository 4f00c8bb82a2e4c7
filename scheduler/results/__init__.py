"""Results: recording, files, plots, spectra, comparison."""
