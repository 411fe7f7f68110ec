"""Secrets: recognizing them in all their encodings, and removing them from others' text."""
