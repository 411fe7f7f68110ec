"""Celery's settings. A message is a hint (the state in Redis is the truth), so each is chosen to lose and
to double as little as it can, and nothing rests on any of them.
"""

import os
from datetime import timedelta

from fixloop.hints import PRIORITY_STEPS
from fixloop.settings import celery_url

# `fixloop worker` gives both; for `celery -A workers.app` one of the two is enough, as everywhere.
broker_url = celery_url(
    os.environ.get("FIXLOOP_BROKER_URL") or os.environ.get("FIXLOOP_STATE_URL") or "redis://localhost:6379/0"
)
broker_connection_retry_on_startup = True
broker_connection_max_retries = None
broker_transport_options = {
    # Longer than any step: a step's lease is what brings it back, not this (R7).
    "visibility_timeout": int(timedelta(hours=6).total_seconds()),
    "socket_connect_timeout": 2.0,
    "socket_timeout": 10.0,
    "socket_keepalive": True,
    "priority_steps": list(PRIORITY_STEPS),
    "queue_order_strategy": "round_robin",
}

task_acks_late = True
task_reject_on_worker_lost = True
worker_prefetch_multiplier = 1
task_ignore_result = True
result_backend = None
task_store_errors_even_if_ignored = False

task_serializer = "json"
accept_content = ["json"]
task_default_queue = "celery"  # for callers that have only celery and the task's name
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
