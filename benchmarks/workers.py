"""The memory of Spark's Python workers."""

from __future__ import annotations

import threading
import time

import psutil

POLL_S = 0.2


class Workers(threading.Thread):
    """Watches the Python processes below this one; ``peak`` is the largest resident size seen, in bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        """Until the process ends."""
        here = psutil.Process()
        while True:
            for child in here.children(recursive=True):
                try:
                    if "python" in child.name():
                        self.peak = max(self.peak, child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue
            time.sleep(POLL_S)
