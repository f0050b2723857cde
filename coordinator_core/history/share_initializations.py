"""Which share partitions have state, get it or lose it, and since when: rows of ``share_initializations`` (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from coordinator_core.groups.share.state import ShareTopic, StatePartitionMetadata
from coordinator_core.history.grounds import lost_offsets
from coordinator_core.history.history_writer import HistoryWriter
from coordinator_core.history.rows import ShareInitializationRow
from coordinator_core.history.testimony import lacking
from coordinator_core.records import LogPosition

ALL_PARTITIONS = -1
"""In place of a partition: a record names the topics whose state is being deleted, not their partitions."""
NOTHING = StatePartitionMetadata()


class SharePhase(StrEnum):
    """What the group's log says of the state of a share partition."""

    INITIALIZING = "initializing"
    INITIALIZED = "initialized"
    DELETING = "deleting"


_SHOWN = {
    SharePhase.INITIALIZING: "initialized",
    SharePhase.INITIALIZED: "state deleted",
    SharePhase.DELETING: "state deleted",
}
"""The only way in which a phase ends that lists behind missing ones show."""
Unit = tuple[str, int]
"""Topic id and partition."""
Listed = dict[SharePhase, dict[Unit, str]]
"""What a record lists in each phase, with topic names."""


def follow_share_phases(
    writer: HistoryWriter, at: LogPosition, before: StatePartitionMetadata | None, after: StatePartitionMetadata | None
) -> None:
    """Follow a record that lists share partitions by phase; ``after`` is None where all of it is deleted.

    A request that failed takes a partition out of ``initializing`` until the next one: that does not end the phase.
    """
    old, new = _listed(before or NOTHING), _listed(after or NOTHING)
    missing = _lost_since_the_last_list(writer, at)
    writer.open_history.share_listed = at.offset
    for phase in SharePhase:
        lasting = writer.open_history.share_phases.setdefault(phase.value, {})
        for partitions in lasting.values() if missing is not None else ():
            # What lasts may have ended and begun again in records that are missing.
            partitions.update({number: lacking(row, missing) for number, row in partitions.items()})
        for unit in [(topic_id, number) for topic_id, partitions in lasting.items() for number in partitions]:
            outcome = "group deleted" if after is None else _outcome(writer, phase, new, unit, at)
            if outcome is not None:
                if missing is not None and outcome != _SHOWN[phase]:
                    outcome = "unknown"  # it may have gone another way before, in records that are missing
                row = lasting[unit[0]].pop(unit[1])
                writer.rows.append(row._replace(until=at, outcome=outcome, is_open=False))
        for unit, name in new[phase].items():
            known = lasting.setdefault(unit[0], {})
            row_there = known.get(unit[1])
            if row_there is None:
                known[unit[1]] = lacking(_begun(writer, phase, unit, name, at, new), missing)
            elif phase is SharePhase.INITIALIZING and (unit not in old[phase] or old == new):
                # A record that says again what the one before said asks for its whole list again.
                known[unit[1]] = row_there._replace(asked=row_there.asked + 1, last_asked=at)


def _begun(
    writer: HistoryWriter, phase: SharePhase, unit: Unit, name: str, at: LogPosition, new: Listed
) -> ShareInitializationRow:
    is_asked = phase is SharePhase.INITIALIZING
    return ShareInitializationRow(
        group_id=writer.group.group_id,
        topic=name,
        topic_id=unit[0],
        partition=unit[1],
        phase=phase.value,
        since=at,
        asked=int(is_asked),
        last_asked=at,
        until=None,
        outcome="open",
        is_open=True,
        was_initialized=is_asked and unit in new[SharePhase.INITIALIZED],
    )


def _listed(metadata: StatePartitionMetadata) -> Listed:
    return {
        SharePhase.INITIALIZING: _partitions(metadata.initializing.items()),
        SharePhase.INITIALIZED: _partitions(metadata.initialized.items()),
        SharePhase.DELETING: {(topic_id, ALL_PARTITIONS): name for topic_id, name in metadata.deleting.items()},
    }


def _partitions(topics: Iterable[tuple[str, ShareTopic]]) -> dict[Unit, str]:
    return {(topic_id, number): topic.name for topic_id, topic in topics for number in topic.partitions}


def _outcome(writer: HistoryWriter, phase: SharePhase, new: Listed, unit: Unit, at: LogPosition) -> str | None:
    """How a phase ended, None if it goes on."""
    topic_id = unit[0]
    if unit in new[phase]:
        return None
    if phase is SharePhase.DELETING:
        return "state deleted"
    if phase is SharePhase.INITIALIZING and unit in new[SharePhase.INITIALIZED]:
        return "initialized"
    if (topic_id, ALL_PARTITIONS) in new[SharePhase.DELETING]:
        return "state deleted"
    if phase is SharePhase.INITIALIZED:
        return "topic deleted"
    return "topic deleted" if _is_gone(writer, topic_id, at) else None


def _is_gone(writer: HistoryWriter, topic_id: str, at: LogPosition) -> bool:
    """Whether the topic is known not to be there: one that is newer than what is known of the topics may be."""
    return writer.topics is not None and writer.topics.partitions_at(topic_id, at.timestamp_ms) == 0


def _lost_since_the_last_list(writer: HistoryWriter, at: LogPosition) -> str | None:
    """Return which records that list share partitions may be missing since the last one; None: none can be."""
    last, coverage = writer.open_history.share_listed or 0, writer.coverage
    is_whole = coverage is not None and coverage.unbroken(at.partition, last, at.offset)
    return None if is_whole else lost_offsets(last, at.offset)
