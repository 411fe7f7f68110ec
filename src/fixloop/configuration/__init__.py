"""fixloop.toml and presets to one frozen configuration."""
