"""What answers warn of where the logs lack records: the same words from log files and from the tables."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator_core.groups.certainty import LogGaps


def incomplete(gaps: Mapping[str, LogGaps]) -> dict[str, LogGaps]:
    """Return the log partitions of which something may have left no trace, in order of their names."""
    return {name: each for name, each in sorted(gaps.items()) if not each.lists_all}


def whole_from(gaps: Mapping[str, LogGaps]) -> str:
    """Return in words from which offset on each log partition is whole, and up to where records are lost."""
    return ", ".join(
        f"{name} {each.whole_from}" + (f" (lost up to {each.lost})" if each.lost >= 0 else "")
        for name, each in gaps.items()
    )


def about_history(gaps: Mapping[str, LogGaps]) -> str | None:
    """Return the warning of an answer about the whole history; None if compaction alone removed records.

    What compaction removed is missing from every real log: the rows themselves say what they lack.
    """
    lost = incomplete(gaps)
    if not lost:
        return None
    return (
        "the log lacks records, and what they may have said is missing from this answer; "
        f"from these offsets on it is whole: {whole_from(lost)}"
    )
