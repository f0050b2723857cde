"""What a history has of the commits of a group: a sum for each partition, with what went back and what was removed."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from coordinator_core.records import LogPosition


class Rewind(NamedTuple):
    """A commit with a lower offset than the commit before it."""

    at: Annotated[LogPosition, "the commit that goes back"]
    before: Annotated[int, "offset committed before"]
    after: Annotated[int, "offset committed now"]
    metadata: Annotated[str | None, "the metadata of the commit; franz-go writes its member id"] = None


class Removal(NamedTuple):
    """The tombstone of a committed offset."""

    at: Annotated[LogPosition, "the tombstone"]
    offset: Annotated[int, "the offset that was committed"]
    how: Annotated[
        str,
        "group deleted, group expired, group deleted or expired, topic deleted, expired, deleted (by a request), or "
        "expired or deleted; the last two with "
        "'or removed with its topic' where it is not known whether the topic was deleted",
    ]


class PartitionCommits(NamedTuple):
    """A summary of one group's commits for one partition, without those of aborted and of open transactions."""

    topic: Annotated[str, "topic name"]
    partition: Annotated[int, "partition"]
    commits: Annotated[int, "how many"]
    first: Annotated[LogPosition, "the first one"]
    last: Annotated[LogPosition, "the last one"]
    offset: Annotated[int | None, "the offset that is committed; null: removed"]
    rewinds: Annotated[tuple[Rewind, ...], "commits that went back"]
    removals: Annotated[tuple[Removal, ...], "tombstones"]
    more_rewinds: Annotated[int, "commits that went back, beyond those that are kept"] = 0
    more_removals: Annotated[int, "tombstones beyond those that are kept"] = 0


class OpenTransaction(NamedTuple):
    """A transaction that has committed offsets of the group and did not end."""

    producer_id: Annotated[int, "the producer"]
    first: Annotated[LogPosition, "its first commit"]
    partitions: Annotated[int, "partitions of which it has commits"]
