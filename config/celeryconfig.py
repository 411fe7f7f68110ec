"""Celery's settings. A message is a hint (the state in Redis is the truth), so each setting minimizes loss and
duplicates, and nothing depends on any of them.
"""

import os

from fixloop.servers.broker_url import celery_settings, is_rabbitmq
from fixloop.servers.settings import load_settings

# `fixloop worker` sets both; for `celery -A workers.app` one of the two is enough, as everywhere.
_named = load_settings().urls()
broker = _named.broker if _named is not None else "redis://localhost:6379/0"
globals().update(celery_settings(broker, connect_seconds=2.0, answer_seconds=10.0))
broker_connection_retry_on_startup = True
broker_connection_max_retries = None
# RabbitMQ: a peer that vanishes is noticed within twice this, and a channel that it closes (a step took longer than its
# `consumer_timeout`) is reopened instead of ending the process and its step.
broker_heartbeat = 10
broker_channel_error_retry = is_rabbitmq(broker)

task_acks_late = True
task_reject_on_worker_lost = True
worker_prefetch_multiplier = 1
task_ignore_result = True
result_backend = None
task_store_errors_even_if_ignored = False

task_serializer = "json"
accept_content = ["json"]
task_default_queue = "celery"  # for callers with only celery and the task's name
task_create_missing_queues = True
task_publish_retry = True
task_publish_retry_policy = {
    "max_retries": 1,
    "interval_start": 0.1,
    "interval_step": 0.1,
    "interval_max": 0.2,
}

task_track_started = True
task_send_sent_event = os.environ.get("FIXLOOP_TASK_EVENTS", "1") == "1"
worker_send_task_events = task_send_sent_event
worker_hijack_root_logger = False
worker_redirect_stdouts = False
worker_enable_remote_control = True
worker_cancel_long_running_tasks_on_connection_loss = False
# A running check or fix may finish; then the message goes back and the lease is released.
worker_soft_shutdown_timeout = 5.0
worker_enable_soft_shutdown_on_idle = False
