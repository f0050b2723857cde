"""What the logs that were given lack: every answer asks here what it cannot know, and why.

An answer about a group rests on the partition of its log, an answer about all groups on all partitions. What is missing
of them is one of three: a partition that was not given, offsets without a record, records that cannot be decoded.
Causes, verdicts, findings and the names of topic ids rest on the metadata log too: it may be absent, begin after the
logs of groups or end before them, or lack records. The offsets and deliveries of share groups rest on
the share state log.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from coordinator_core.cluster.clocks import utc
from coordinator_core.cluster.given_topics import NO_TOPICS_GIVEN, GivenTopics
from coordinator_core.groups.certainty import LogGaps
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.history.grounds import UNREADABLE
from coordinator_core.history.lost_records import NOTHING_LOST, LostRecords
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, SHARE_LOG

NOT_KNOWN: Final = "the offsets and deliveries of share groups"
MOST_NAMED: Final = 5
"""So many groups, partitions, or ranges of offsets are named in a warning."""


@dataclass(slots=True)
class GivenShareState:
    """The partitions of the share state log that were given, and what they lack.

    ``count`` is how many there are as topics say, 0 if that is not known. ``is_placed``: each log tells its partition.
    ``lost`` has the offsets without a record, both included, by partition; ``unreadable`` the first offset whose record
    cannot be decoded.
    """

    partitions: set[int] = field(default_factory=set)
    count: int = 0
    is_placed: bool = True
    lost: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    unreadable: dict[int, int] = field(default_factory=dict)

    def note_lost(self, partition: int, spans: Iterable[tuple[int, int]]) -> None:
        """Note offsets without a record, both included; none is given where nothing is lost."""
        if offsets := list(spans):
            self.lost[partition] = offsets

    def note_unreadable(self, partition: int, offset: int) -> None:
        """Note a record that cannot be decoded; those of a partition are noted in order."""
        self.unreadable.setdefault(partition, offset)

    @property
    def shown(self) -> int:
        """How many partitions there are; at least, if that is not known."""
        return max(self.count, max(self.partitions, default=-1) + 1)

    @property
    def absent(self) -> list[int]:
        """The partitions that exist and were not given."""
        return [number for number in range(self.shown) if number not in self.partitions] if self.is_placed else []

    @property
    def doubtful(self) -> list[int]:
        """The partitions that exist, or may exist, and were not given; of unknown ones the first alone."""
        return [*self.absent, *([self.shown] if self._is_not_counted else [])]

    @property
    def _is_not_counted(self) -> bool:
        """Whether partitions may be absent that nothing shows."""
        return bool(self.partitions) and (self.count == 0 if self.is_placed else self.count != 1)

    def missing(self) -> list[str]:
        """Return what is missing for answers about share groups, in words; the list is empty if nothing is."""
        if not self.partitions and self.is_placed:
            return [f"the share state log ({SHARE_LOG}) was not given: {NOT_KNOWN} are not known"]
        reasons = []
        if absent := self.absent:
            reasons.append(
                f"{len(absent)} of {self.shown} partitions of {SHARE_LOG} were not given ({_few(map(str, absent))}): "
                f"{NOT_KNOWN} that are in them are not known"
            )
        if self._is_not_counted:
            reasons.append(
                f"no metadata log says how many partitions {SHARE_LOG} has: {NOT_KNOWN} in partition "
                f"{self.doubtful[-1]} or higher, if there are any, are not known"
                if self.is_placed
                else f"these logs do not tell which partitions of {SHARE_LOG} they are: {NOT_KNOWN} in others, if any, "
                "are not known"
            )
        if self.lost:
            named = "; ".join(
                f"{SHARE_LOG}-{number} offsets {_few(f'{first} to {last}' for first, last in spans)}"
                for number, spans in sorted(self.lost.items())
            )
            reasons.append(
                f"the share state log lacks records, and what they said of {NOT_KNOWN} is not known: {named}"
            )
        if self.unreadable:
            named = "; ".join(
                f"{SHARE_LOG}-{number} from offset {at} on" for number, at in sorted(self.unreadable.items())
            )
            reasons.append(f"records that {UNREADABLE}; what they said of {NOT_KNOWN} is not known: {named}")
        return reasons


PARTITIONS: Final = 50
"""Partitions of an internal topic by default (``offsets.topic.num.partitions``), where nothing says how many it has."""


@dataclass(frozen=True, slots=True)
class GivenLogs:
    """The partitions of each log of groups that were given, empty ones included, by topic.

    ``counts`` is how many there are, where topics or the ids of groups tell (``log_partition.proven_count``): otherwise
    as many as the highest one given shows at least. A log that does not tell its partition is None: it may be any. Each
    cluster with groups has the log ``GROUP_LOG``; that of Connect workers on KIP-848 exists where topics or its own
    partitions show it. ``numbered`` names the log partitions that were printed without positions.
    """

    partitions: Mapping[str, frozenset[int] | None] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    numbered: Sequence[str] = ()

    def count(self, topic: str) -> int:
        """Return how many partitions a log has; at least, if topics are not known."""
        return max(self.counts.get(topic, 0), max(self.partitions.get(topic) or {-1}) + 1)

    def absent(self) -> dict[str, list[int]]:
        """Return the partitions that exist and were not given, by topic; without those of which none is absent.

        Of a log that was not given at all, and of which nothing tells how many there are, the list is empty.
        """
        by_topic = {}
        for topic in sorted({GROUP_LOG, *self.partitions, *self.counts} if self.partitions else ()):
            there = self.partitions.get(topic, frozenset())
            missing = [number for number in range(self.count(topic)) if number not in (there or ())]
            if there is not None and (missing or not there):
                by_topic[topic] = missing
        return by_topic

    @property
    def are_all(self) -> bool:
        """Whether no partition can be absent."""
        return not self.absent() and not self.not_counted()

    def not_counted(self) -> dict[str, int | None]:
        """Return the logs of which partitions may be absent that nothing shows, with the first number of these.

        The number is None where a log does not tell its partition, and is not the only one.
        """
        return {
            topic: None if there is None else self.count(topic)
            for topic, there in sorted(self.partitions.items())
            if (self.counts.get(topic) != 1 if there is None else topic not in self.counts and there)
        }

    def may_have(self, group_id: str, names: Iterable[str]) -> set[str]:
        """Return those of these log partitions that a group may be in."""
        if GROUP_LOG not in self.counts:
            return {*names}
        number = log_partition_of(group_id, self.counts[GROUP_LOG])
        return {name for name in names if not name.startswith(GROUP_LOG) or name == f"{GROUP_LOG}-{number}"}

    def absent_log_of(self, group_id: str, topic: str = GROUP_LOG) -> str | None:
        """Return in words the log partition of a group if it was not given; None: it was, or may have been."""
        there = self.partitions.get(topic, frozenset())
        if there is None or topic not in self.counts:
            return None
        number = log_partition_of(group_id, self.counts[topic])
        return None if number in there else f"{topic}-{number}"


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is missing of the logs of groups for an answer.

    ``gaps`` is what each log partition lacks as seen from the moment of the answer, by its name; ``lost`` names the
    records that cannot be decoded. ``topics`` is what was given of the topics, ``first_ms`` and ``last_ms`` are the
    times of the first and the last record of the logs of groups (None: there is none). ``share_state`` tells what was
    given of the share state log, to answers that rest on it (None: not asked). ``without_ends`` are the log partitions
    of dumps that show no transactions, and lack offsets at which some may have ended, or have none at all;
    ``without_times`` those that have records without a time of their own. ``whole_from_ms`` is the time of the first
    record behind which no partition lacks an offset, be it compacted or lost (None: none is missing). ``missing_ends``
    says why records are missing behind the last one, by the name of the log partition.
    """

    given: GivenLogs = field(default_factory=GivenLogs)
    gaps: Mapping[str, LogGaps] = field(default_factory=dict)
    lost: LostRecords = NOTHING_LOST
    topics: GivenTopics = NO_TOPICS_GIVEN
    first_ms: int | None = None
    last_ms: int | None = None
    share_state: Callable[[], GivenShareState] | None = None
    without_ends: Sequence[str] = ()
    without_times: Sequence[str] = ()
    whole_from_ms: int | None = None
    missing_ends: Mapping[str, str] = field(default_factory=dict)

    def shows_all_since(self, time_ms: int) -> bool:
        """Return whether nothing about any group is missing from a time on: no partition, offset or readable record,
        nor a group that was there then and whose records were lost before.
        """
        is_readable = not self.lost.unreadable and not self.lost.unplaced
        is_whole = self.whole_from_ms is None or self.whole_from_ms < time_ms
        return is_whole and is_readable and self.lists_all and not self.without_times

    @property
    def lists_all(self) -> bool:
        """Whether a list of groups is whole: none can have been there without a trace in these logs."""
        return self.given.are_all and all(gap.lists_all for gap in self.gaps.values())

    @property
    def incomplete(self) -> dict[str, LogGaps]:
        """The log partitions of which something may have left no trace, in order of their names."""
        gaps = sorted(self.gaps.items())
        return {name: log for name, log in gaps if not log.lists_all and not log.is_after_end and not log.is_untimed}

    def reasons(self, group_id: str | None = None) -> list[str]:
        """Return what is missing of the logs of groups, in words; the list is empty if nothing is.

        ``group_id``: for an answer about one group that is in these logs, so that it does not matter which others there
        may be, and what of theirs cannot be decoded. None: about all groups.
        """
        return [
            *self.about_end(),
            *self._of_ends(group_id),
            *without_positions(self.given.numbered),
            *self._of_gaps(),
            *(self._of_absence() if group_id is None else self._of_own_absence(group_id)),
            *(self._of_uncounted() if group_id is None else ()),
            *self._of_unreadable(group_id),
            *self._of_missing_times(),
        ]

    def about_end(self) -> list[str]:
        """Return in words that the logs end before the moment of the answer, or may go on behind it; the list is empty
        if they do not.
        """
        untimed = [
            f"{name}: it is not known which of its last records were written before that moment: where records are "
            f"missing, an offset of {GROUP_LOG} gives no exact time; ask for a time"
            for name, log in sorted(self.gaps.items())
            if log.is_untimed
        ]
        if self.last_ms is None or not any(log.is_after_end for log in self.gaps.values()):
            return untimed
        return [
            *untimed,
            f"the log ends at {utc(self.last_ms)}, before that moment: what was written since is not known; ask for "
            "that time, or without a time for the end of the log",
        ]

    def about_window(self, since_ms: int | None, until_ms: int | None = None) -> list[str]:
        """Return in words that nothing is known of the times from ``since_ms`` to ``until_ms``, as the logs end before
        them or begin after them; the list is empty if they do not. None: the window has no such end.
        """
        if self.last_ms is not None and since_ms is not None and since_ms > self.last_ms:
            return [f"the log ends at {utc(self.last_ms)}, before {utc(since_ms)}: what was written since is not known"]
        if self.first_ms is not None and until_ms is not None and until_ms < self.first_ms:
            return [f"{utc(until_ms)} is before the first record of these logs, which is of {utc(self.first_ms)}"]
        return []

    def reasons_with_topics(self, group_id: str | None = None) -> list[str]:
        """Return what is missing for an answer that rests on topics, too, in words; Connect's own log tells of none.

        ``group_id`` is as in ``reasons``.
        """
        return [*self.reasons(group_id), *self.about_topics()]

    def about_topics(self) -> list[str]:
        """Return what is missing of the topics for answers about the logs of groups, in words."""
        missing = self.topics.missing(self.first_ms, self.last_ms) if GROUP_LOG in self.given.partitions else None
        return [] if missing is None else [missing]

    def about_offsets(self) -> list[str]:
        """Return what is missing for an answer about committed offsets, beside ``reasons``."""
        if not self.without_ends:
            return []
        return [
            f"the dump of {_few(self.without_ends)} does not show how transactions ended: an offset that an aborted or "
            "open transaction committed counts as committed here"
        ]

    def about_history(self) -> list[str]:
        """Return what is missing for an answer about what happened, beside ``reasons``."""
        if not self.without_ends:
            return []
        return [
            f"the dump of {_few(self.without_ends)} lacks offsets (transaction markers, or lost records): "
            "answers that need all records of a group, such as findings, are incomplete or missing"
        ]

    def about_share_groups(self) -> list[str]:
        """Return what is missing for an answer about offsets or deliveries of share groups, beside ``reasons``."""
        return [] if self.share_state is None else self.share_state().missing()

    def about_group(self, group_id: str) -> list[str]:
        """Return what is missing for a group of which there is no trace, in words."""
        if self.given.absent_log_of(group_id):
            return [*self._of_own_absence(group_id)][:1]
        if self.given.not_counted() or GROUP_LOG not in self.given.counts:
            return self.reasons()
        lacks = [*self.about_end(), *self._of_ends(group_id), *without_positions(self.given.numbered), *self._of_gaps()]
        return [*lacks, *self._of_unreadable(group_id), *self._of_absent_workers(group_id)]

    def about_past(self, group_id: str) -> list[str]:
        """Return in words what is gone of the log of a group, also by compaction, where its past is not found."""
        own = self.given.may_have(group_id, self.gaps)
        gone = {name: log for name, log in sorted(self.gaps.items()) if log.missing >= 0 and name in own}
        return [f"the log lacks records before these offsets: {whole_from(gone)}"] if gone else []

    def _of_ends(self, group_id: str | None) -> Iterator[str]:
        own = self.missing_ends if group_id is None else self.given.may_have(group_id, self.missing_ends)
        yield from (reason for name, reason in sorted(self.missing_ends.items()) if name in own)

    def _of_own_absence(self, group_id: str) -> Iterator[str]:
        if absent := self.given.absent_log_of(group_id):
            yield f"group {group_id!r} lies in {absent}, which was not given"
        yield from self._of_absent_workers(group_id)

    def _of_absent_workers(self, group_id: str) -> Iterator[str]:
        """Connect workers on KIP-848 are in a log of their own: any group may be one of them."""
        if absent := self.given.absent_log_of(group_id, CONNECT_LOG):
            yield f"if group {group_id!r} is of Connect workers, it may lie in {absent}, which was not given"

    def _of_gaps(self) -> Iterator[str]:
        if lost := {name: log for name, log in self.incomplete.items() if name not in self.given.numbered}:
            yield (
                "the log lacks records, and this answer lacks what they said; "
                f"from these offsets on the log is complete: {whole_from(lost)}"
            )

    def _of_absence(self) -> Iterator[str]:
        for topic, missing in self.given.absent().items():
            if not missing:
                yield f"{topic} was not given: nothing is known of the groups in it"
                continue
            many = f"{len(missing)} of {self.given.count(topic)} partitions of {topic} were not given"
            yield f"{many} ({_few(map(str, missing))}): nothing is known of the groups in them"

    def _of_uncounted(self) -> Iterator[str]:
        for topic, first in self.given.not_counted().items():
            if first is None:
                yield f"these logs do not say which partitions of {topic} they are: groups of others may be missing"
                continue
            yield (
                f"no metadata log says how many partitions {topic} has: groups in partition {first} "
                "or higher, if there are any, are missing from this answer"
            )

    def _of_missing_times(self) -> Iterator[str]:
        if self.without_times:
            yield (
                f"records of {_few(self.without_times)} have no timestamps (a dump without them, or message format 0): "
                "answers lack what needs them; times of commits and of classic groups are those in the record values"
            )

    def _of_unreadable(self, group_id: str | None) -> Iterator[str]:
        notes = []
        lost = self.lost if group_id is None else self.lost.about(group_id)
        for topic, partition in sorted({*lost.unreadable, *lost.unplaced}):
            place = (topic, partition)
            groups = lost.unreadable.get(place, {})
            spans = [*groups.values(), *([lost.unplaced[place]] if place in lost.unplaced else [])]
            about = f"group{'s' * (len(groups) > 1)} {_few(map(repr, sorted(groups)))}"
            about = "any group" if place in lost.unplaced else about
            notes.append(f"{topic}-{partition} from offset {min(span[0] for span in spans)} on, of {about}")
        if notes:
            yield f"records that {UNREADABLE}; what they said is not known: {'; '.join(notes)}"


def without_positions(names: Sequence[str]) -> list[str]:
    """Return in words that these log partitions were printed without positions; the list is empty if none was."""
    if not names:
        return []
    return [
        f"{_few(names)}: printed without positions: partitions are computed from the keys as if there were "
        f"{PARTITIONS} (Kafka's default), offsets count the lines, and it is not known which records are missing"
    ]


def whole_from(gaps: Mapping[str, LogGaps]) -> str:
    """Return in words from which offset on each log partition is whole, and up to where records are lost."""
    return ", ".join(
        f"{name} {log.whole_from}" + (f" (lost up to {log.lost})" if log.lost >= 0 else "")
        for name, log in gaps.items()
    )


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:MOST_NAMED]) + " and others" * (len(listed) > MOST_NAMED)
