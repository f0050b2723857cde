"""Warnings about the records of one log, bounded: the first of each cause in full, the rest as a number."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

Warn = Callable[[str], None]

EXAMPLES: Final = 3
"""Number of warnings of one cause that are passed on as they are."""

CAUSES: Final = 50
"""Number of causes that are told apart; damaged bytes may give any number of texts."""

OTHER: Final = "other causes"
NUMBER: Final = re.compile(r"\d+")


def each_once(warn: Warn) -> Warn:
    """Return ``warn`` for several logs of which each meets the same problems: it says no text twice."""
    said = set[str]()

    def warn_of_new(message: str) -> None:
        if message not in said:
            said.add(message)
            warn(message)

    return warn_of_new


class BoundedWarnings:
    """Passes on the first warnings of each cause, and counts the others for ``finish``.

    ``log`` is the name of the log that they are about.
    """

    def __init__(self, log: str, warn: Warn) -> None:
        self._log = log
        self._warn = warn
        self._seen: Counter[str] = Counter()
        self._texts: dict[str, str] = {}
        self._held_back: Counter[str] = Counter()

    def add(self, message: str, cause: str) -> None:
        """Warn, or count the warning. Causes that differ only in numbers are the same cause."""
        kind = NUMBER.sub("#", cause)
        if kind not in self._seen and len(self._seen) >= CAUSES:
            kind = cause = OTHER
        self._seen[kind] += 1
        if self._seen[kind] <= EXAMPLES:
            self._texts.setdefault(kind, cause)
            self._warn(message)
        else:
            self._held_back[kind] += 1

    def finish(self) -> None:
        """Warn of what was counted since the last call: one warning for each cause."""
        for kind, count in self._held_back.items():
            self._warn(f"{self._log}: {count} more like these: {self._texts[kind]}")
        self._held_back.clear()
