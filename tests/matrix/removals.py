"""What may be missing: each removal changes a copy of the whole logs, and says what the answers then have to name."""

import gzip
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from coordinator_core.records import Family, MetadataRecordType
from coordinator_core.wire.batch_format import CONTROL_BIT, TRANSACTIONAL_BIT, read_header
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batch_writer import NewRecord, Producer, encode_batch, frame, record_bytes
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.record_codec import decode_key, decode_metadata, decode_value, encode_value
from tests.core.log_cleaner import compact
from tests.jobs.logs import batches
from tests.jobs.queries.unreadable_logs import cut_key, newer_value, rewritten

TOPIC = "__consumer_offsets"
METADATA = "__cluster_metadata-0"
SHARE = "__share_group_state"
FIRST = f"{0:020}.log"

GAPS = "lacks records"
END = "its end is missing"
ABSENT = "were not given|was not given"
NEWER = "cannot be decoded"
TOPICS = "topics|metadata"
NO_FIELD = "(?!)"
OTHER_CLUSTER = "another cluster|no topics are known"


CUT = "the archive is cut"


class NothingToRemoveError(Exception):
    """The logs do not have what a removal takes away."""


@dataclass(frozen=True)
class Removal:
    """A change of a folder of logs. It returns what is given with ``--log`` instead of the folder, or None.

    ``reason``: a pattern that a warning or an error has to match where an answer lacks something. ``partitions`` are
    the partitions of the log of groups that it touches; ``others`` says whether other logs are touched: then an answer
    about any group may lack something. ``is_tail``: what is left is a whole log that ends earlier. ``forgets``: it is
    compacted, so that rows about what was before are gone. ``nights`` is the number of nights over which it comes into
    tables; of more than one, and of a dump that is not of segments (``is_dump``), only tables are asked.
    ``is_numbered``: positions are numbers of lines, so that times tell which record is which. ``changes``: a pattern of
    the fields whose values are others, because what is left says so. ``lacks``: a pattern of those that may have no
    value. ``questions``: a pattern of those that are asked. ``hides_time``: a record is gone that tells when the moment
    is that is asked about, so that the topics and share state of then are not known; ``loses_end``: a partition ends
    earlier (``moments`` finds out both). ``may_be_silent``: perhaps nothing tells that something is missing; where an
    answer says so, it has to be right.
    ``moves_topics_ms``: a change of a topic that is so near to a classic generation
    may come before or after it, as only times tell. ``clock_ms``: the metadata log has times so much later, as have
    findings that it alone tells. ``ends``: a change before, by which the logs end earlier; then the
    answers are compared with those of such logs.
    """

    change: Callable[[Path], list[Path] | None]
    reason: str = ""
    partitions: tuple[int, ...] = ()
    others: bool = False
    is_tail: bool = False
    forgets: bool = False
    nights: int = 1
    is_dump: bool = False
    is_numbered: bool = False
    changes: str = NO_FIELD
    lacks: str = NO_FIELD
    questions: str = ""
    hides_time: bool = False
    loses_end: bool = False
    may_be_silent: bool = False
    moves_topics_ms: int = 0
    clock_ms: int = 0
    ends: Callable[[Path], object] | None = None

    def touches_all(self, question: str) -> bool:
        """Whether an answer about any group may lack something."""
        return self.others or (self.hides_time and question == "describe then")

    @property
    def is_of_tables(self) -> bool:
        """Whether only tables can answer."""
        return self.nights > 1 or self.is_dump


def segments(folder: Path, partition: int) -> list[Path]:
    return sorted((folder / f"{TOPIC}-{partition}").glob("*.log"))


def group_partitions(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{TOPIC}-*"))


def cut(folder: Path, count: int = 5) -> None:
    """Give each partition of the log of groups so many segments, as a broker names them."""
    for partition in group_partitions(folder):
        found = [one for file in sorted(partition.glob("*.log")) for one in batches(file.read_bytes())]
        if not found:
            continue
        for file in partition.glob("*.log"):
            file.unlink()
        size = max(1, -(-len(found) // count))
        for begin in range(0, len(found), size):
            part = found[begin : begin + size]
            base = 0 if begin == 0 else part[0][0]
            (partition / f"{base:020}.log").write_bytes(b"".join(data for _, data in part))


def without_segment(number: int, partition: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        files = segments(folder, partition)
        if number + 1 >= len(files):  # a log without its last segment is one that ends earlier
            raise NothingToRemoveError(f"partition {partition} has {len(files)} segments")
        keys = [record.key for file in files[:number] for record in _rows(file.read_bytes()) if record.key]
        if number > 0 and len({*keys}) == len(keys):
            raise NothingToRemoveError(f"no key is twice before segment {number} of {partition}: as behind compaction")
        files[number].unlink()

    return change


def without_end(partition: int) -> Callable[[Path], None]:
    """The last segment of one partition is not there, while other logs go on."""

    def change(folder: Path) -> None:
        files = segments(folder, partition)
        if len(files) < 2:
            raise NothingToRemoveError(f"partition {partition} has {len(files)} segments")
        files[-1].unlink()

    return change


def without_partition(number: int) -> Callable[[Path], None]:
    return lambda folder: shutil.rmtree(folder / f"{TOPIC}-{number}")


def without_topic(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for found in folder.glob(f"{name}-*"):
            shutil.rmtree(found)

    return change


def without_groups(folder: Path) -> None:
    without_topic(TOPIC)(folder)


def metadata_file(folder: Path) -> Path:
    return folder / METADATA / FIRST


def metadata_part(first: float, last: float) -> Callable[[Path], None]:
    """Of the metadata log only the batches between two parts of it are left."""

    def change(folder: Path) -> None:
        file = metadata_file(folder)
        found = list(batches(file.read_bytes()))
        begin = int(len(found) * first)
        kept = found[begin : max(int(len(found) * last), begin + 1)]
        file.unlink()
        (file.parent / f"{kept[0][0]:020}.log").write_bytes(b"".join(data for _, data in kept))

    return change


def metadata_without_last(lost_ms: int) -> Callable[[Path], None]:
    """The metadata log ends so long before the last record of the logs of groups, at a batch."""

    def change(folder: Path) -> None:
        ends = [read_header(data, 0, 0).max_timestamp for data in _last_batches(folder)]
        found = list(batches(metadata_file(folder).read_bytes()))
        kept = [data for _, data in found if read_header(data, 0, 0).max_timestamp <= max(ends) - lost_ms]
        metadata_file(folder).write_bytes(b"".join(kept))

    return change


def _last_batches(folder: Path) -> Iterator[bytes]:
    for partition in group_partitions(folder):
        found = [data for file in sorted(partition.glob("*.log")) for _, data in batches(file.read_bytes())]
        yield from found[-1:]


def metadata_hole(folder: Path) -> None:
    file = metadata_file(folder)
    found = list(batches(file.read_bytes()))
    del found[len(found) // 2]
    file.write_bytes(b"".join(data for _, data in found))


def metadata_unreadable(folder: Path) -> None:
    """One record about a topic has a version that no schema has."""
    file = metadata_file(folder)
    found, done = [], False
    for _, data in batches(file.read_bytes()):
        header = read_header(data, 0, 0)
        is_control = header.attributes & CONTROL_BIT
        records = [] if is_control else [_record(row) for row in _rows(data)]
        for number, record in enumerate([] if done else records):
            if record.value is not None and record.value[1] == MetadataRecordType.TOPIC and not done:
                decode_metadata(record.value)
                records[number] = record._replace(value=record.value[:2] + b"\x63" + record.value[3:])
                data, done = encode_batch(records, leader_epoch=header.leader_epoch), True
        found.append(data)
    if not done:
        raise NothingToRemoveError("no record of a topic")
    file.write_bytes(b"".join(found))


def metadata_of_another_cluster(of_name: Callable[[str], str] = str) -> Callable[[Path], None]:
    """All topics have other ids, and other names if asked for, as in the cluster of another stage."""

    def other(record: NewRecord) -> NewRecord:
        assert record.value is not None
        kind, version, value = decode_metadata(record.value)
        if "topicId" in value:
            value["topicId"] = _other_id(value["topicId"])
        if kind == MetadataRecordType.TOPIC and not value["name"].startswith("__"):
            value["name"] = of_name(value["name"])
        return record._replace(value=encode_value(kind, version, value, Family.METADATA))

    return lambda folder: rewritten(metadata_file(folder), other, 1)


def of_another_cluster(folder: Path, partition: int) -> None:
    """A partition of the log of groups is of a cluster whose topics have other ids."""

    def other(record: NewRecord) -> NewRecord:
        if record.key is None or record.value is None:
            return record
        kind, _ = decode_key(record.key)
        version, value = decode_value(record.value, kind)
        return record._replace(value=encode_value(kind, version, _with_other_ids(value)))

    for file in segments(folder, partition):
        rewritten(file, other, 1)


def _with_other_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_other_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _with_other_ids(each) for name, each in value.items()}
    return found | {"topicId": _other_id(value["topicId"])} if "topicId" in value else found


def _other_id(topic_id: str) -> str:
    return topic_id[7::-1] + topic_id[8:]


def without_share(number: int) -> Callable[[Path], None]:
    return lambda folder: shutil.rmtree(folder / f"{SHARE}-{number}")


def share_file(folder: Path, number: int) -> Path:
    return folder / f"{SHARE}-{number}" / FIRST


def share_part(number: int, first: float, last: float) -> Callable[[Path], None]:
    """Of a partition of the share state log only the batches between two parts of it are left."""

    def change(folder: Path) -> None:
        file = share_file(folder, number)
        found = list(batches(file.read_bytes()))
        kept = found[int(len(found) * first) : int(len(found) * last)]
        file.unlink()
        base = kept[0][0] if kept else 0
        (file.parent / f"{base:020}.log").write_bytes(b"".join(data for _, data in kept))

    return change


def share_hole(number: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = share_file(folder, number)
        found = list(batches(file.read_bytes()))
        del found[len(found) // 2 : len(found) // 2 + 1]  # an empty log has no batch to lose
        file.write_bytes(b"".join(data for _, data in found))

    return change


def share_damaged(number: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = share_file(folder, number)
        found = [bytearray(data) for _, data in batches(file.read_bytes())]
        for batch in found[len(found) // 2 : len(found) // 2 + 1]:
            batch[-1] ^= 1
        file.write_bytes(b"".join(found))

    return change


def share_unreadable(number: int) -> Callable[[Path], None]:
    return lambda folder: rewritten(share_file(folder, number), newer_value, 3, 1)


def damaged(partition: int, *numbers: int, cut_off: bool = False) -> Callable[[Path], None]:
    """Batches of the whole partition with a wrong bit; ``cut_off``: and its last file ends within a batch."""

    def change(folder: Path) -> None:
        files = segments(folder, partition)
        whole = b"".join(file.read_bytes() for file in files)
        found = [bytearray(data) for _, data in batches(whole)]
        if len(found) <= max(numbers):
            raise NothingToRemoveError(f"{partition} has {len(found)} batches")
        for number in {number % len(found) for number in numbers}:
            found[number][-1] ^= 1
        for file in files[1:]:
            file.unlink()
        data = b"".join(bytes(each) for each in found)
        files[0].write_bytes(data[: -len(found[-1]) // 2] if cut_off else data)

    return change


def cut_off(partition: int) -> Callable[[Path], None]:
    """The last file ends within its last batch, as a copy of a file that is written to."""

    def change(folder: Path) -> None:
        file = segments(folder, partition)[-1]
        data = file.read_bytes()
        last = list(batches(data))[-1][1]
        file.write_bytes(data[: len(data) - len(last) // 2])

    return change


def compacted(partition: int, *, keep_tombstones: bool) -> Callable[[Path], None]:
    """The first four fifths of a partition are compacted."""

    def change(folder: Path) -> None:
        files = segments(folder, partition)
        whole = b"".join(file.read_bytes() for file in files)
        entries = list(_entries(whole))
        end = entries[len(entries) * 4 // 5].batch[0]  # a broker cleans whole segments
        kept = compact(entries, end, 0 if keep_tombstones else end, Random(3))
        for file in files[1:]:
            file.unlink()
        files[0].write_bytes(b"".join(_written(kept)))

    return change


@dataclass(frozen=True)
class _Entry:
    """A row of a log as the log cleaner sees it."""

    offset: int
    batch: tuple[int, int]
    key: bytes | None
    is_tombstone: bool
    producer_id: int | None
    ends: bool | None
    record: NewRecord
    leader_epoch: int
    producer: Producer
    data: bytes


def _rows(data: bytes) -> Iterator[LogRecord]:
    for row in read_rows(lambda at, size: data[at : at + size], len(data)):
        assert isinstance(row, LogRecord)
        yield row


def _record(row: LogRecord) -> NewRecord:
    return NewRecord(row.offset, row.timestamp, row.key, row.value)


def _entries(log: bytes) -> Iterator[_Entry]:
    for base, data in batches(log):
        header = read_header(data, 0, 0)
        producer = Producer(header.producer_id, header.producer_epoch, header.base_sequence)
        is_transactional = bool(header.attributes & TRANSACTIONAL_BIT)
        is_control = bool(header.attributes & CONTROL_BIT)
        for row in _rows(data):
            yield _Entry(
                row.offset,
                (base, header.last_offset),
                None if is_control else row.key,
                row.value is None,
                producer.id if is_transactional else None,
                (row.key[3] == 1 if row.key else None) if is_control else None,
                _record(row),
                header.leader_epoch,
                producer,
                data,
            )


def _written(kept: list[_Entry]) -> Iterator[bytes]:
    """Batches keep their bounds: one whose records are all there as it was, another one with what is left."""
    by_batch: dict[tuple[int, int], list[_Entry]] = {}
    for entry in kept:
        by_batch.setdefault(entry.batch, []).append(entry)
    for (base, last), entries in sorted(by_batch.items()):
        one = entries[0]
        if len(entries) == last - base + 1 or one.ends is not None:
            yield one.data
            continue
        records = [each.record for each in entries]
        times = [record.timestamp for record in records]
        yield frame(
            b"".join(record_bytes(each, each.offset - base, each.timestamp - times[0]) for each in records),
            base_offset=base,
            last_offset=last,
            count=len(records),
            base_timestamp=times[0],
            max_timestamp=max(times),
            attributes=TRANSACTIONAL_BIT if one.producer_id is not None else 0,
            leader_epoch=one.leader_epoch,
            producer=one.producer,
        )


def overlapping(folder: Path) -> None:
    """A segment begins with the last batches of the one before, as in a copy that was taken while segments rolled."""
    first, second = segments(folder, _first_with_records(folder))[:2]
    again = list(batches(first.read_bytes()))[-3:]
    (second.parent / f"{again[0][0]:020}.log").write_bytes(b"".join(data for _, data in again) + second.read_bytes())
    second.unlink()


def other_replica(folder: Path) -> list[Path]:
    """The same partition twice, from another replica whose segments begin elsewhere."""
    name = f"{TOPIC}-{_first_with_records(folder)}"
    other = folder.parent / "replica"
    shutil.copytree(folder / name, other / name)
    files = sorted((other / name).glob("*.log"))
    found = [one for file in files for one in batches(file.read_bytes())]
    for file in files:
        file.unlink()
    for begin in range(0, len(found), 7):
        part = found[begin : begin + 7]
        base = 0 if begin == 0 else part[0][0]
        (other / name / f"{base:020}.log").write_bytes(b"".join(data for _, data in part))
    return [folder, other]


def _first_with_records(folder: Path) -> int:
    """Return the first partition that has several segments, as ``cut`` gives each that is not empty."""
    return next(number for number in range(len(group_partitions(folder))) if len(segments(folder, number)) > 1)


def marker_lost(partition: int) -> Callable[[Path], None]:
    return lambda folder: _without_marker(folder, partition)


def _without_marker(folder: Path, partition: int) -> None:
    for file in segments(folder, partition)[1:]:
        found = [data for _, data in batches(file.read_bytes())]
        for number, data in enumerate(found):
            if read_header(data, 0, 0).attributes & CONTROL_BIT:
                file.write_bytes(b"".join(found[:number] + found[number + 1 :]))
                return
    raise NothingToRemoveError(f"no end of a transaction behind the first segment of {partition}")


def linked(folder: Path) -> None:
    """The folders of partitions are symbolic links."""
    for found in group_partitions(folder):
        real = folder.parent / f"real-{found.name}"
        found.rename(real)
        found.symlink_to(real, target_is_directory=True)


def linked_files(folder: Path) -> None:
    for found in group_partitions(folder):
        for file in sorted(found.glob("*.log")):
            real = folder.parent / f"real-{found.name}-{file.name}"
            file.rename(real)
            file.symlink_to(real)


def archived(folder: Path) -> list[Path]:
    archive = folder.parent / "logs.tar"
    with tarfile.open(archive, "w") as made:
        made.add(folder, "logs")
    return [archive]


def truncated_tar(folder: Path) -> list[Path]:
    (archive,) = archived(folder)
    with archive.open("rb+") as stream:
        stream.truncate(archive.stat().st_size * 2 // 3)
    return [archive]


def truncated_gz(folder: Path) -> list[Path]:
    (archive,) = archived(folder)
    data = gzip.compress(archive.read_bytes())
    packed = folder.parent / "logs.tar.gz"
    packed.write_bytes(data[: len(data) * 2 // 3])
    return [packed]


def with_fifo(folder: Path) -> None:
    os.mkfifo(folder / f"{TOPIC}-0" / f"{10**6:020}.log")


def unreadable(partition: int, change: Callable[[NewRecord], NewRecord], every: int) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        for file in segments(folder, partition):
            rewritten(file, change, every, 3)

    return changed


def emptied(partition: int) -> Callable[[Path], None]:
    """Retention or an accident has left a partition with one empty segment."""

    def change(folder: Path) -> None:
        files = segments(folder, partition)
        for file in files[1:]:
            file.unlink()
        files[0].write_bytes(b"")

    return change


def both(*changes: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for each in changes:
            each(folder)

    return change


def removals(partitions: list[int], *, has_share: bool = True) -> dict[str, Removal]:
    """The removals for logs with these partitions, which ``cut`` has made."""
    found = {"nothing": Removal(lambda folder: None)}
    for number in partitions:
        for name, at in (("first", 0), ("second", 1), ("middle", 2), ("fourth", 3)):
            found[f"{name} segment of {number}"] = Removal(without_segment(at, number), GAPS, (number,))
        found[f"last segment of {number}"] = Removal(without_segment(-1, number), GAPS, (number,), is_tail=True)
        found[f"end of {number}"] = Removal(without_end(number), END, (number,), may_be_silent=True)
        found[f"partition {number} absent"] = Removal(without_partition(number), ABSENT, (number,))
        # A moment that names an offset of that partition is of no known time: share state then is unknown.
        found[f"partition {number} empty"] = Removal(emptied(number), GAPS, (number,), True, is_tail=True)
        found[f"damaged batch in {number}"] = Removal(damaged(number, 4), GAPS, (number,))
        found[f"damaged batches and a cut in {number}"] = Removal(damaged(number, 4, -2, cut_off=True), GAPS, (number,))
        found[f"cut off in {number}"] = Removal(cut_off(number), GAPS, (number,), is_tail=True)
        for name, keep in (("with", True), ("without", False)):
            found[f"{number} compacted {name} tombstones"] = Removal(
                compacted(number, keep_tombstones=keep), GAPS, (number,), forgets=True
            )
        found[f"unreadable values in {number}"] = Removal(unreadable(number, newer_value, 13), NEWER, (number,))
        found[f"unreadable keys in {number}"] = Removal(unreadable(number, cut_key, 40), NEWER, (number,))
        found[f"marker lost in {number}"] = Removal(marker_lost(number), GAPS, (number,))
    found |= {
        # Offsets are those of the log of workers where it is the only one: they mean another moment.
        "no log of groups": Removal(
            without_groups,
            f"no log of groups|nothing of groups|{ABSENT}",
            tuple(partitions),
            True,
            questions="^(?!.*then)",
        ),
        "metadata absent": Removal(without_topic("__cluster_metadata"), TOPICS, (), True),
        "metadata short": Removal(metadata_part(0, 0.3), TOPICS, (), True),
        "metadata almost whole": Removal(metadata_part(0, 0.9), TOPICS, (), True),
        "metadata ends within a rebalance": Removal(metadata_part(0, 0.02), TOPICS, (), True),
        "metadata ends 5 s before the groups": Removal(metadata_without_last(5_000), TOPICS, (), True),
        "metadata without first half": Removal(metadata_part(0.5, 1), TOPICS, (), True),
        "metadata with a hole": Removal(metadata_hole, TOPICS, (), True),
        "metadata with an unreadable topic": Removal(metadata_unreadable, TOPICS, (), True),
        "metadata of a cluster with the same topics": Removal(metadata_of_another_cluster(), OTHER_CLUSTER, (), True),
        "metadata of a cluster with other topics": Removal(
            metadata_of_another_cluster(lambda name: f"other-{name}"), OTHER_CLUSTER, (), True
        ),
        "older metadata": Removal(metadata_part(0, 0.1), TOPICS, (), True),
        "overlapping copies": Removal(overlapping),
        "another replica": Removal(other_replica),
        "linked folders": Removal(linked),
        "linked files": Removal(linked_files),
        "tar": Removal(archived),
        "truncated tar": Removal(truncated_tar, f"{CUT}|{ABSENT}", tuple(partitions), True),
        "truncated gz": Removal(truncated_gz, f"{CUT}|{ABSENT}", tuple(partitions), True),
        "a FIFO among the segments": Removal(with_fifo, "neither a file nor a folder", tuple(partitions), True),
    }
    if has_share:
        found |= share_removals()
    return found


def share_removals() -> dict[str, Removal]:
    """What may be missing of the share state log."""
    found = {"share state absent": Removal(without_topic(SHARE), SHARE, (), True)}
    for number in (0, 1):
        found |= {
            f"share state {number} absent": Removal(without_share(number), f"{SHARE}.*{ABSENT}", (), True),
            f"share state {number} without its first half": Removal(share_part(number, 0.5, 1), SHARE, (), True),
            f"share state {number} with a hole": Removal(share_hole(number), SHARE, (), True),
            f"share state {number} damaged": Removal(share_damaged(number), SHARE, (), True),
            f"share state {number} unreadable": Removal(share_unreadable(number), SHARE, (), True),
        }
    return found
