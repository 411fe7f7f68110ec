"""Secrets: what is one, in which disguises, and cutting them out of what others wrote."""
