"""Benchmarks; most compare fixloop with a baseline in the same run."""
