"""The configuration of a deployment: Celery, Redis and Flower settings, and the presets."""
