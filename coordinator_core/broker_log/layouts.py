"""What stands behind the messages in the lines of one file: the logger, the thread, further columns, a space.

A message that ends with words of its own shows where it ends, and so what a layout writes behind it. Of a message that
ends with a value, such as a client's reason, that is taken away.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Final

PIECE: Final = re.compile(r"(?P<dotted>(?:[\w$-]+\.)+[\w$-]+)|(?P<word>[\w$-]+)|(?P<space>\s+)|(?P<other>.)", re.S)
SHAPES: Final = {"dotted": r"(?:[\w$-]+\.)+[\w$-]+", "word": r"[\w$-]+", "space": r"\s+"}
USUAL: Final = re.compile(r"\s+\((?:[\w$-]+\.)+[\w$-]+\)(?:\s+\[[^\]]*\])?\s*$|\s+$")
"""The tail where no line shows one: the logger, as Kafka's default layout has it, and a thread behind it."""
MOST_TAIL: Final = 200
"""Characters of a tail; what is longer is not one."""
MOST_SHAPES: Final = 16
RARE: Final = 20
"""What fewer than one in this many lines shows is not a tail: another message may begin with the same words."""


class LineLayout:
    """The tails that lines of one file have shown, those of texts in quotes and those of others."""

    def __init__(self) -> None:
        self._seen: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
        self._patterns: dict[bool, re.Pattern[str]] = {}

    def learn(self, tail: str, *, is_quoted: bool) -> None:
        """Take notice of what stands behind a message."""
        if len(tail) <= MOST_TAIL:
            self._seen[is_quoted][_shape(tail)] += 1
            self._patterns.pop(is_quoted, None)

    def without_tail(self, message: str, *, is_quoted: bool) -> str:
        """Return the message without what the layout writes behind it."""
        if is_quoted not in self._patterns:
            self._patterns[is_quoted] = self._pattern(is_quoted)
        tail = self._patterns[is_quoted].search(message)
        return message if tail is None else message[: tail.start()]

    def _pattern(self, is_quoted: bool) -> re.Pattern[str]:
        seen = self._seen[is_quoted]
        if not seen:
            return USUAL
        usual = [shape for shape, count in seen.most_common(MOST_SHAPES) if count * RARE >= max(seen.values())]
        return re.compile("|".join(rf"(?:{shape})\Z" for shape in sorted(usual, key=len, reverse=True)), re.S)


@lru_cache(1024)
def _shape(tail: str) -> str:
    """Return a pattern of tails with other words of the same kind."""
    pieces = (match.lastgroup or "other" for match in PIECE.finditer(tail))
    texts = (match[0] for match in PIECE.finditer(tail))
    return "".join(SHAPES.get(kind) or re.escape(text) for kind, text in zip(pieces, texts, strict=True))
