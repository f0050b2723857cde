"""Copies of a log partition that several brokers have, or one broker at several times: without what no leader kept."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import LogFormatError
from coordinator_core.wire.batch_format import Damage
from coordinator_core.wire.unreplicated import CopiedRecords, tails
from jobs.sources.files import LogFile
from jobs.sources.log_parts import LogPart

MOST_NAMED: Final = 6
"""A sentence names at most so many folders."""


def without_tails(logs: Sequence[LogFile]) -> list[LogFile]:
    """Return the segments, each of a copy that ends in records which were never replicated with ``upto`` before them.

    Only partitions of which there are several copies are read for it. See ``coordinator_core.wire.unreplicated``.
    """
    cut: dict[LogFile, LogFile] = {}
    placed = (log for log in logs if log.topic and log.is_placed and not log.is_snapshot)
    for _, of_partition in groupby(placed, key=lambda log: (log.topic, log.partition)):
        copies: dict[str, list[LogFile]] = {}
        for log in of_partition:
            copies.setdefault(folder_of(log), []).append(log)
        if len(copies) > 1:
            for files, upto in zip(copies.values(), tails([_records(files) for files in copies.values()]), strict=True):
                cut |= {file: replace(file, upto=upto) for file in files if upto is not None}
    return [cut.get(log, log) for log in logs]


def folder_of(log: LogFile) -> str:
    """Return the name of the folder in which a copy is; of segments that are packed one by one, that of these files."""
    is_packed_alone = log.member and os.path.basename(log.path).startswith(log.segment)
    return (log.path if is_packed_alone else log.name).rpartition("/")[0]


def copies_in_words(logs: Iterable[LogFile]) -> list[str]:
    """Return in words, for each topic of which log partitions have several copies, which copy counts.

    The first one does, in the order in which they were given; what it lacks is taken from the others.
    """
    folders: dict[tuple[str, int], list[str]] = {}
    for log in logs:
        if log.topic and log.is_placed and not log.is_snapshot:
            of_partition = folders.setdefault((log.topic, log.partition), [])
            of_partition += [] if folder_of(log) in of_partition else [folder_of(log)]
    first: dict[str, list[str]] = {}
    for (topic, _), copies in sorted(folders.items()):
        if len(copies) > 1:
            first.setdefault(topic, []).append(copies[0].rpartition("/")[0] or copies[0])
    return [
        f"{len(used)} partition{'s' * (len(used) > 1)} of {topic} in several copies: those in "
        f"{', '.join([*dict.fromkeys(used)][:MOST_NAMED])} are used, and of the others what these lack"
        for topic, used in first.items()
    ]


def tails_in_words(logs: Iterable[LogPart]) -> list[str]:
    """Return in words which copies have records that were left out."""
    files = (log for log in logs if isinstance(log, LogFile) and log.upto is not None)
    cut = {(log.topic, log.partition, folder_of(log)): log.upto for log in files}
    return [
        f"{folder}: the records of {topic}-{partition} from offset {upto} on were never replicated: another copy has "
        "records of a later leader there (KIP-101), and they are left out"
        for (topic, partition, folder), upto in sorted(cut.items())
    ]


def _records(files: Sequence[LogFile]) -> CopiedRecords:
    # batches[i] has three arrays of one length, offsets, leader epochs and times: each is a column of all batches then.
    batches: list[list[npt.NDArray[np.int64]]] = []
    for file in files:
        try:
            batches += (_ordered(part) for part in file.parts() if not isinstance(part, Damage))
        except LogFormatError:
            continue
    columns = (np.concatenate([batch[number] for batch in batches] or [np.zeros(0, np.int64)]) for number in range(3))
    offsets, epochs, times = columns
    # Segments of one copy may overlap after a crash of the cleaner: the copies are compared offset by offset.
    order = np.argsort(offsets, kind="stable")
    return CopiedRecords(offsets[order], epochs[order], times[order])


def _ordered(rows: pa.RecordBatch) -> list[npt.NDArray[np.int64]]:
    offsets = pc.coalesce(rows.column("offset"), rows.column("batch_last_offset"))
    columns = (offsets, rows.column("leader_epoch"), rows.column("timestamp"))
    return [pc.fill_null(column.cast(pa.int64()), -1).to_numpy(zero_copy_only=False) for column in columns]
