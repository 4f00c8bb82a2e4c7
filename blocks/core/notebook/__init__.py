"""What notebooks show, in parts: HTML, and small plots as SVG."""
