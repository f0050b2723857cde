"""What questions about a moment read of the tables, over ``damaged_tables``: of all groups, and of one."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from coordinator_core.groups.proven_state import GroupKeys
from jobs.queries.from_tables.commits import GroupKey, commits_then
from jobs.queries.from_tables.selection import Selection
from jobs.queries.from_tables.stored_moment import GroupRecords, StoredShareLog, UnreadKeys
from jobs.relations.log_extent import Extents, extents_at
from jobs.relations.moment import AsOf
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.reader import TableReader
from tests.jobs.relations.damaged_tables import GROUP
from tests.jobs.relations.tables_of_logs import CLUSTER

MOMENTS: Final = {
    "the end": AsOf(),
    "a time": AsOf(time_ms=1_795_257_100_000),
    "offsets": AsOf(offsets={0: 150, 1: 300}),
}


def commits(selected: Selection, extents: Extents) -> list[Any]:
    """Rows about the partitions of a group come in no order."""
    return [(key, of.last, of.held, sorted(map(repr, of.about))) for key, of in commits_then(selected, extents)]


def records(selected: Selection, extents: Extents) -> list[Any]:
    of_groups = GroupRecords(selected, extents)
    by_log = [(group.group_id, [*of_group]) for group, of_group in of_groups.by_log()]
    later = sorted((key, sorted(keys)) for key, keys in of_groups.later_keys().items())
    return [list(of_groups.by_group()), by_log, later]


def unread_keys(selected: Selection, extents: Extents) -> list[Any]:
    """What each group has in place of the records that cannot be read, and which are behind the moment."""
    unread, later = UnreadKeys(selected, extents), dict[GroupKey, list[bytes]]()
    found = []
    for group in sorted(unread.by_group):
        keys = GroupKeys()
        commits = unread.note(group, keys)
        found.append((group, sorted(commits.items()), sorted(keys.unread.items())))
    followed = unread.note_later(later)
    return [found, *(sorted((group, sorted(of)) for group, of in part.items()) for part in (later, followed))]


PARTS: Final[dict[str, Callable[[Selection, Extents], Any]]] = {
    "commits": commits,
    "group_records": records,
    "unread_keys": unread_keys,
}


def of_groups(part: Callable[[Selection, Extents], Any], moment: AsOf, tables: TableReader) -> list[Any]:
    """What one part reads of all groups, and of one."""
    extents = extents_at(tables, CLUSTER, moment, GROUP_TOPICS)
    return [part(Selection(tables, CLUSTER, GROUP_TOPICS, group_id), extents) for group_id in (None, GROUP)]


def of_share_log(time_ms: int | None, tables: TableReader) -> list[Any]:
    selections = [Selection(tables, CLUSTER, GROUP_TOPICS, group_id) for group_id in (None, SHARE_GROUP)]
    return [StoredShareLog(selected, time_ms).state(None) for selected in selections]


SHARE_GROUP: Final = "D-share-38"
QUESTIONS: Final[dict[str, Callable[[TableReader], Any]]] = {
    **{
        f"queries.from_tables.{name} at {moment}": partial(of_groups, part, at)
        for name, part in PARTS.items()
        for moment, at in MOMENTS.items()
    },
    **{
        f"queries.from_tables.share_log at {moment}": partial(of_share_log, MOMENTS[moment].time_ms)
        for moment in ("the end", "a time")
    },
}
