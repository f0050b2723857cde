"""A listener of a nightly run that ignores all messages."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any


class NullListener:
    """Ignores all messages."""

    def __init__(self) -> None:
        self.logged: dict[str, Any] = {}

    def note(self, message: str, **facts: Any) -> None:
        """Ignore the message."""

    warn = note

    def step(self, activity: str, **progress: Any) -> AbstractContextManager[None]:
        """Return a context that does nothing."""
        return nullcontext()

    shows_progress = False
