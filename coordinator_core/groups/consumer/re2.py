"""Topic regexes in the syntax of RE2, which Kafka's coordinator uses since 4.0 (KIP-848); by way of Arrow's own RE2."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

_RE2J_MESSAGES = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}
"""RE2's words for what is wrong, in those of the Java port, which the broker's messages quote."""


@lru_cache(maxsize=4096)
def error_in(regex: str) -> str | None:
    """What is wrong with the regex, in the words of RE2/J; None: it is valid."""
    try:
        pc.match_substring_regex(pa.array([""]), regex)
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        for words, java in _RE2J_MESSAGES.items():
            if reason.startswith(words):
                return java
        return reason.split(":")[0]
    return None


def matching(regex: str, names: Collection[str]) -> list[str]:
    """Those of the names that the whole regex matches; none if it is invalid."""
    if not names or error_in(regex) is not None:
        return []
    array = pa.array(names, pa.string())
    found = pc.match_substring_regex(array, rf"\A(?:{regex})\z")
    matches: list[str] = array.filter(found).to_pylist()
    return matches
