"""What was given of the share state log, from the tables; ``queries.from_logs`` finds the same in files."""

from coordinator_core.history.knowledge import GivenShareState
from coordinator_core.history.topic_inputs import SharePhase
from coordinator_core.records import SHARE_LOG
from jobs.relations.given_partitions import given, log_counts, numbered
from jobs.relations.log_extent import Extents, below_ends
from jobs.relations.logs import has_orphans, lost_records
from jobs.relations.unreadable import first_offsets
from jobs.sources.files import SHARE_TOPICS, UNKNOWN_PARTITION
from jobs.tables.reader import TableReader


def given_share_state(tables: TableReader, cluster: str, extents: Extents | None = None) -> GivenShareState:
    """Return the partitions of the share state log that were given, and what they lack.

    ``extents`` are those of the log at a moment: only what they lack before it counts (None: all).
    """
    places = {place for place in given(tables).get(cluster, ()) if place[0] in SHARE_TOPICS}
    of_lines = numbered(tables, cluster)
    given_state = GivenShareState(
        {number for _, number in places},
        log_counts(tables, cluster, places, of_lines).get(SHARE_LOG, 0),
        _is_placed(tables, cluster) and not places & of_lines,
    )
    ends = {place: extent.end for place, extent in (extents or {}).items()}
    for place, spans in lost_records(tables, cluster, SHARE_TOPICS).ranges.items():
        end = ends.get(place)
        given_state.note_lost(place[1], sorted(span for span in spans if end is None or span[0] < end))
    before = below_ends(extents or {})
    for number, offset in first_offsets(tables, cluster, SHARE_TOPICS, before).items():
        given_state.note_unreadable(number, offset)
    return given_state


def _is_placed(tables: TableReader, cluster: str) -> bool:
    """Return whether all dumps of the log tell its partitions."""
    unplaced = tables.rows(
        "SELECT run_id FROM $runs WHERE job = 'ingest' AND cluster = :cluster AND log_topic IN :topics "
        "AND coalesce(log_partition, :unknown) = :unknown LIMIT 1",
        cluster=cluster,
        unknown=UNKNOWN_PARTITION,
        topics=SHARE_TOPICS,
    )
    return next(unplaced, None) is None


def rests_on_share_state(tables: TableReader, cluster: str, group_id: str | None) -> bool:
    """Return whether a group (None: any) has initialized share partitions, or is in the share state log alone."""
    if not (tables.exists("share_initializations") and tables.exists("group_states")):
        return False
    initialized = tables.rows(
        "SELECT group_id FROM $share_initializations WHERE cluster = :cluster "
        "AND (was_initialized OR phase = :initialized) AND group_id = coalesce(:group_id, group_id) LIMIT 1",
        cluster=cluster,
        initialized=SharePhase.INITIALIZED.value,
        group_id=group_id,
    )
    return next(initialized, None) is not None or has_orphans(tables, cluster, group_id)
