"""Topic regexes in the syntax of RE2, which Kafka's coordinator uses since 4.0 (KIP-848); evaluated by Arrow's
own RE2.
"""

import re
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
    "invalid perl operator: (?<": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}
"""RE2's words for what is wrong, in those of the Java port, which the broker's messages quote."""

_LITERAL = re.compile(r"\\Q.*?(?:\\E|\Z)|\\[^QC]", re.DOTALL)
"""Quoted text, which may go on to the end, and escaped characters; what is left has a meaning of its own."""
_GROUP_NAME = re.compile(r"\(\?P?<(\w+)>")


@lru_cache(maxsize=4096)
def error_in(regex: str) -> str | None:
    """Return what is wrong with the regex, in the words of RE2/J; None if it is valid."""
    try:
        # Arrow compiles the regex whatever it is held against: one empty text is enough.
        pc.match_substring_regex(pa.array([""]), regex)
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        for words, java in _RE2J_MESSAGES.items():
            if reason.startswith(words):
                return java
        return reason.split(":")[0]
    # Within quoted text these characters mean themselves, so that it is cut out before syntax is looked at.
    return _refused_by_the_port(_LITERAL.sub("", regex))


def _refused_by_the_port(syntax: str) -> str | None:
    """What RE2/J does not take although RE2 does."""
    if r"\C" in syntax:
        return "invalid escape sequence"
    names = _GROUP_NAME.findall(syntax)
    return "duplicate capture group name" if len(set(names)) < len(names) else None


def _whole(regex: str) -> str:
    """The regex that matches where this one matches the whole text."""
    # Quoted text that is not closed would take in what is put behind it.
    quoted = [part for part in _LITERAL.findall(regex) if part.startswith(r"\Q")]
    end = r"\E" if quoted and not quoted[-1].endswith(r"\E") else ""
    return rf"\A(?:{regex}{end})\z"


def matching(regex: str, names: Collection[str]) -> list[str]:
    """Return the names that the whole regex matches; none if it is invalid."""
    if not names or error_in(regex) is not None:
        return []
    array = pa.array(names, pa.string())
    is_match = pc.match_substring_regex(array, _whole(regex))
    matches: list[str] = array.filter(is_match).to_pylist()
    return matches
