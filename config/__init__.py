"""How a deployment runs: Celery, Redis and Flower settings, and the presets."""
