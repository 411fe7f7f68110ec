"""The commands of `fixloop`: each module adds its own with `register(app)`; cli.py puts them together."""
