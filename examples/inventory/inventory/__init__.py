"""Stock levels of a small shop."""
