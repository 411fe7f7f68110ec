"""Turns fixloop.toml and presets into one frozen configuration."""
