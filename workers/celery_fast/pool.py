"""Celery's pool of processes, whose loop asks the kernel only where something changes (docs/decisions/0031)."""

from typing import Any

from celery.concurrency import asynpool, prefork


class _Pool(asynpool.AsynPool):  # type: ignore[misc]
    on_poll_start: Any

    def _create_write_handlers(self, hub: Any, *args: Any, **more: Any) -> None:
        super()._create_write_handlers(hub, *args, **more)
        celerys = self.on_poll_start

        def on_poll_start() -> None:
            if self.outbound_buffer or not self._all_inqueues.isdisjoint(hub.writers):
                celerys()

        self.on_poll_start = on_poll_start


class TaskPool(prefork.TaskPool):  # type: ignore[misc]
    Pool = _Pool
