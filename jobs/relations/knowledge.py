"""What the logs in the tables lack, as seen from their end: answers and reports from tables ask here."""

from functools import partial

from coordinator_core.history.knowledge import Knowledge
from jobs.relations.given_partitions import stored_given
from jobs.relations.log_extent import extents_at, gaps_by_name, names_without_ends, reasons_of_ends
from jobs.relations.logs import lost_records, times_of_groups, whole_from_ms, without_times
from jobs.relations.moment import AsOf
from jobs.relations.share_state import given_share_state, rests_on_share_state
from jobs.relations.topics import topics_given
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.reader import TableReader


def stored_knowledge(tables: TableReader, cluster: str) -> Knowledge:
    """Return what the logs of a cluster lack: offsets, partitions, records that cannot be decoded, topics."""
    extents, lost = extents_at(tables, cluster, AsOf(), GROUP_TOPICS), lost_records(tables, cluster)
    return Knowledge(
        stored_given(tables, cluster),
        gaps_by_name(extents),
        lost,
        topics_given(tables, cluster),
        *times_of_groups(tables, cluster),
        partial(given_share_state, tables, cluster),
        names_without_ends(extents),
        without_times(tables, cluster),
        whole_from_ms(tables, cluster, lost),
        reasons_of_ends(extents),
    )


def missing_of_shares(known: Knowledge, tables: TableReader, cluster: str, group_id: str | None = None) -> list[str]:
    """Return what is missing of the share state log for the history of a group (None: of all) that rests on it."""
    return known.about_share_groups() if rests_on_share_state(tables, cluster, group_id) else []
