"""Rows of a watch for pages that follow: as events that the server sends (text/event-stream)."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Full, Queue
from threading import Lock
from typing import Final

MOST_FOLLOWERS: Final = 16
MOST_WAITING: Final = 256
"""Rows that wait for one page; a page that is slower is let go, and asks again."""
MOST_KEPT: Final = 200
"""The last rows, which a page is given when it begins."""
SILENCE_S: Final = 10.0
"""After so long without a row a comment is sent, which shows whether the page is still there."""

NOW: Final = b"event: now\ndata: \n\n"
"""Ends the rows that were kept: those behind it are new."""
NEWS: Final = b"event: news\ndata: \n\n"


class Live:
    """Passes rows on to the pages that follow now."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._followers: list[Queue[bytes | None]] = []
        self._kept: deque[bytes] = deque(maxlen=MOST_KEPT)

    @property
    def is_followed(self) -> bool:
        """Whether a page follows now."""
        return bool(self._followers)

    def publish(self, row: str) -> None:
        """Pass on a row, which is one line of JSON."""
        event = f"data: {row}\n\n".encode()
        with self._lock:
            self._kept.append(event)
            self._pass_on(event)

    def announce_news(self) -> None:
        """Tell the pages that questions about all groups are answered with more than before."""
        with self._lock:
            self._pass_on(NEWS)

    def _pass_on(self, event: bytes) -> None:
        for queue in list(self._followers):
            try:
                queue.put_nowait(event)
            except Full:
                self._followers.remove(queue)
                # What waits is dropped to make room for the end of the rows; the page asks again and gets the last
                # ones anew.
                queue.queue.clear()
                queue.put_nowait(None)

    @contextmanager
    def followed(self) -> Iterator[Iterator[bytes] | None]:
        """Give the rows from now on, after the last ones before; None: too many pages follow already."""
        queue: Queue[bytes | None] = Queue(MOST_WAITING)
        with self._lock:
            # Under one lock with ``publish``: each row is either among those kept or in the queue, and none is in
            # both.
            if len(self._followers) >= MOST_FOLLOWERS:
                kept = None
            else:
                self._followers.append(queue)
                kept = list(self._kept)
        try:
            yield None if kept is None else _rows(kept, queue)
        finally:
            with self._lock:
                if queue in self._followers:
                    self._followers.remove(queue)


def _rows(kept: list[bytes], queue: Queue[bytes | None]) -> Iterator[bytes]:
    yield b"retry: 2000\n\n"
    yield from kept
    yield NOW
    while True:
        try:
            event = queue.get(timeout=SILENCE_S)
        except Empty:
            event = b": still here\n\n"
        if event is None:
            return
        yield event
