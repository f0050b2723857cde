"""Lines of brokers' application logs beside log files: their zone is found from the records that they speak of, and
those of another cluster are left out."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_core.audit.folds.topic_lines import topics_of_lines
from coordinator_core.broker_log.all_files import Epoch, later_lines, of_other_clusters, with_zones
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.record_types import EPOCH_GROUP_RECORDS
from coordinator_core.records import Family, RecordType
from coordinator_core.wire.batch_format import Kind
from jobs.relations.brokers import NO_ZONE, OTHER_CLUSTER, copy_is_older, not_loaded
from jobs.sources.bounded_warnings import Warn
from jobs.sources.broker_logs import Zone, read_broker_logs
from jobs.sources.log_parts import LogPart
from jobs.sources.log_reader import LogReader, by_partition

EPOCH_TYPES = frozenset((RecordType.GROUP_METADATA, *(types.epoch for types in EPOCH_GROUP_RECORDS)))
"""The types of the records with a group's epoch or generation."""
GROUP_TYPES = EPOCH_TYPES | {types.member for types in EPOCH_GROUP_RECORDS}
"""Those with members, too."""


@dataclass(frozen=True, slots=True)
class LinesByGroup:
    """The lines by group, and those that name no group."""

    of_group: Mapping[str, Sequence[BrokerEvent]] = field(default_factory=dict)
    others: Sequence[BrokerEvent] = ()

    def topics(self) -> TopicHistory | None:
        """Return the topics that the lines show; None: none."""
        return topics_of_lines(self.others)


NO_LINES = LinesByGroup()


@dataclass(frozen=True, slots=True)
class BrokerLogs:
    """Where brokers' application logs are, and their zone; None: it is found from the log."""

    paths: Sequence[Path] = ()
    zone: Zone | None = None

    def read(self, logs: Iterable[LogPart], warn: Warn) -> LinesByGroup:
        """Read them; ``logs`` are those of the coordinator. Raises InputError if a path cannot be read."""
        if not self.paths:
            return NO_LINES
        events = list(read_broker_logs(self.paths, warn, self.zone))
        known = _known(logs, {event.group_id for event in events if event.group_id is not None})
        refused = dict(of_other_clusters(events, known.members))
        for file, members in refused.items():
            warn(OTHER_CLUSTER.format(file, members))
        # Without the lines of other clusters: they would be compared with records that they do not speak of.
        events = with_zones((event for event in events if event.file not in refused), known.written_ms)
        if homeless := sum(event.timestamp_ms is None for event in events):
            warn(NO_ZONE.format(homeless))
        for line in later_lines(events, known.last_ms, known.epochs).values():
            warn(copy_is_older(line, known.last_ms))
        for words in not_loaded(events, known.last_ms):
            warn(words)
        of_group: defaultdict[str, list[BrokerEvent]] = defaultdict(list)
        for event in events:
            if event.group_id is not None:
                of_group[event.group_id].append(event)
        return LinesByGroup(of_group, [event for event in events if event.group_id is None])


NO_BROKER_LOGS = BrokerLogs()


class _Known(NamedTuple):
    """What the log has of some groups: when each epoch was written (ms), once in each life of its group; the ids of all
    members; the last epoch of each; and the time of the last record of each log partition (ms).
    """

    written_ms: defaultdict[Epoch, list[int]]
    members: defaultdict[str, set[str]]
    epochs: dict[str, int]
    last_ms: dict[int, int]


def _known(logs: Iterable[LogPart], groups: set[str]) -> _Known:
    known = _Known(defaultdict(list), defaultdict(set), {}, {})
    for partition, files in by_partition(logs)[Family.GROUP].items() if groups else ():
        reader = LogReader(files, lambda message: None)  # the pass that answers warns of what cannot be read
        for row in reader.rows():
            known.last_ms[partition] = max(known.last_ms.get(partition, 0), row.timestamp)
            # The first two bytes of a key are the record type: commits, which are most records, are not decoded.
            if row.kind != Kind.RECORD.value or int.from_bytes(row.key[:2]) not in GROUP_TYPES:
                continue
            record = reader.decoded(row)
            if record is None or record.group_id not in groups:
                continue
            value: dict[str, Any] = record.value or {}
            members = [member["memberId"] for member in value.get("members", ())]
            known.members[record.group_id].update(members, filter(None, [record.key.get("memberId")]))
            if record.type not in EPOCH_TYPES:
                continue
            epoch: int = value.get("generation", value.get("epoch", -1))
            if known.epochs.get(record.group_id) != epoch:
                known.written_ms[record.group_id, epoch].append(record.at.timestamp_ms)
            known.epochs[record.group_id] = epoch
    return known
