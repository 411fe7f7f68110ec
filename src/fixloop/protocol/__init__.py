"""The protocol: pure decisions, messages and their Markdown. No I/O, no clock, no Redis, no Celery."""
