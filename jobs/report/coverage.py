"""Which parts of the logs were read: the basis of everything else in the report."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest

from coordinator_core.cluster.image import MOST_PARTITIONS
from coordinator_core.records import Family
from jobs.report.data import AbsentPartitions, Gap, LogCoverage
from jobs.sources.log_parts import LogPart
from jobs.sources.log_reader import LogReader

MOST_GAPS = 10


def coverage(logs: Iterable[LogPart]) -> Iterator[LogCoverage]:
    """Yield the coverage of each log partition. Damage is not reported here, but where the same files are decoded."""
    partitions: dict[tuple[str, str, int], list[LogPart]] = {}
    for file in logs:
        partitions.setdefault((file.family.value, file.topic, file.partition), []).append(file)
    for (_, topic, _), files in sorted(partitions.items()):
        covered = _partition(topic or "(segment files)", files)
        if covered is not None:
            yield covered


def absent(
    covered: Iterable[LogCoverage], counts: Mapping[str, int], empty: Iterable[tuple[str, int]] = ()
) -> Iterator[AbsentPartitions]:
    """Return the log topics that lack partitions.

    ``counts``: partition count of each topic, as far as topics are known. ``empty``: partitions that were given and
    have no record; they are not absent.
    """
    given: defaultdict[str, set[int]] = defaultdict(set)
    for log in covered:
        given[log.topic].add(log.partition)
    for topic, partition in empty:
        given[topic].add(partition)
    for topic, there in sorted(given.items()):
        if min(there) < 0:  # the partition of a dump is not known: it may be any of them
            continue
        known = max(counts.get(topic, 0), max(there) + 1)
        missing = tuple(number for number in range(min(known, MOST_PARTITIONS)) if number not in there)
        if missing:
            yield AbsentPartitions(topic, missing, known)


def _partition(topic: str, files: list[LogPart]) -> LogCoverage | None:
    reader = LogReader(files, lambda message: None)
    first = last = -1
    times: list[int] = []
    records = 0
    gaps: list[Gap] = []
    for row in reader.rows():
        if records == 0:
            first = row.offset
        elif row.offset > last + 1:
            gaps.append(Gap(last + 1, row.offset - 1))
        last = row.offset
        records += 1
        if row.timestamp >= 0:
            times = [min(times[0], row.timestamp), max(times[1], row.timestamp)] if times else [row.timestamp] * 2
    if not records:
        return None
    largest = sorted(nlargest(MOST_GAPS, gaps, key=lambda gap: gap.last - gap.first))
    return LogCoverage(
        topic=topic,
        partition=reader.partition,
        first_offset=first,
        last_offset=last,
        first_ms=times[0] if times else -1,
        last_ms=times[1] if times else -1,
        records=records,
        missing=sum(gap.last - gap.first + 1 for gap in gaps),
        gap_count=len(gaps),
        gaps=tuple(largest),
        # Snapshots of the metadata log stand for all that was before them.
        from_start=reader.from_start or (files[0].family is Family.METADATA and first == 0),
    )
