"""How the tables fit together: which columns of one table name rows of another. The page of the tables lists them."""

from __future__ import annotations

from typing import Final, NamedTuple


class Join(NamedTuple):
    """``columns`` of a row of ``table`` are those of rows of ``other``; several where ``to_one`` is false.

    ``columns``: pairs of a column of ``table`` and one of ``other``, or of fields of their structs.
    """

    table: str
    other: str
    columns: tuple[tuple[str, str], ...]
    meaning: str
    to_one: bool = True


def _same(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in ("cluster", *names))


JOINS: Final = (
    Join("rebalances", "group_epochs", (*_same("group_id"), ("at", "opened")), "the epoch it led to"),
    Join("target_audits", "group_epochs", (*_same("group_id"), ("at", "target")), "the epoch of the judged target"),
    Join("assignments", "memberships", _same("group_id", "member_id"), "the stays of the owner", False),
    Join("violations", "group_epochs", _same("group_id"), "the epochs of the group", False),
    Join("findings", "rebalances", _same("group_id"), "the rebalances of the group", False),
    Join(
        "group_offsets",
        "assignments",
        _same("group_id", "topic", "partition"),
        "who owned the committed partition (`kind = 'current'`)",
        False,
    ),
    Join("group_offsets", "topic_history", _same("topic"), "the topic through time", False),
    Join("commit_summaries", "group_offsets", _same("group_id", "topic", "partition"), "the committed offset", False),
    Join(
        "offset_commits",
        "log_records",
        _same("log_topic", "log_partition", "log_offset"),
        "the record as it was dumped",
    ),
    Join(
        "group_records", "log_records", _same("log_topic", "log_partition", "log_offset"), "the record as it was dumped"
    ),
    Join("log_records", "runs", _same("run_id", "log_topic", "log_partition"), "the run that took it in", False),
    Join("lag_history", "end_offsets", _same("topic", "partition", "timestamp_ms"), "the snapshot of its end offset"),
)
"""The joins that questions need. Epochs are joined by their records: a group that is deleted and created again has the
same numbers once more.
"""
