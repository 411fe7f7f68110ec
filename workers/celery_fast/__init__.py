"""What leans on the private interfaces of Celery, kombu or redis-py: look here first when they are upgraded."""
