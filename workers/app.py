"""The Celery app: settings from config/, tasks from this folder. `celery -A workers.app` from the root works too."""

from celery import Celery

from config import celeryconfig
from fixloop.servers.broker import amqp_class
from workers.celery_fast import transport

transport.register()
app = Celery("fixloop", include=["workers.tasks", "workers.chats"], amqp=amqp_class(celeryconfig.broker))
app.config_from_object("config.celeryconfig")
app.conf.worker_consumer = "workers.celery_fast.consumer:Consumer"
