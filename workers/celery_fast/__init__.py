"""Code that depends on private interfaces of Celery, kombu or redis-py: check it first when they are upgraded."""
