"""The Celery application: step tasks, specialists, fixers, workspaces, sweeper, supervisor."""
