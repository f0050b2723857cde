"""Segments that are not there although files beside them are: a copy of a broker's folder without its last segment.

====================================  ================================================================================
file of a broker                      what it shows
====================================  ================================================================================
an index behind the last segment      it is made and removed with its segment, which is made when it gets a record; no
                                      cleaner takes the segment away that is written to
a snapshot of producers               the log reached the offset of its name
the first offsets of leader epochs    the log reached each of them
====================================  ================================================================================

The last segment of a log is never cleaned: no record is gone between its end and an offset that the log reached. What
indexes hold proves nothing: in a copy of a broker that runs they may be later than their segment.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from coordinator_core.records import Family
from coordinator_core.wire.batch_format import HEADER_SIZE, MAGIC_AT, read_header
from coordinator_core.wire.framing import layout
from jobs.sources.files import LOG_SUFFIX, SWAP_SUFFIX, LogFile

SEGMENT: Final = re.compile(rf"(?P<base>\d{{20}})\{LOG_SUFFIX}(\{SWAP_SUFFIX})?")
INDEX: Final = re.compile(r"(?P<base>\d{20})\.(index|timeindex|txnindex)")
SNAPSHOT: Final = re.compile(r"(?P<base>\d{20})\.snapshot")
EPOCHS: Final = "leader-epoch-checkpoint"
EPOCH: Final = re.compile(rb"^\d+ (\d{1,18})$", re.MULTILINE)
"""A leader epoch and its first offset, in a file whose first lines have one number each."""


def with_absent(logs: Sequence[LogFile]) -> list[LogFile]:
    """Return the logs, each with a segment that is missing behind its last one.

    Of a log partition that lies in several folders nothing is told: each copy may be of another time.
    """
    found = []
    for _, of_partition in groupby(logs, key=lambda log: (log.topic, log.partition)):
        files = [*of_partition]
        found += [*files, *(_absent(files) if _may_tell(files) else ())]
    return found


def _may_tell(files: Sequence[LogFile]) -> bool:
    is_whole = all(log.topic and not (log.member or log.texts or log.is_snapshot) for log in files)
    is_of_groups = files[0].family is not Family.METADATA  # its snapshots tell how far that log goes
    return is_whole and is_of_groups and len({os.path.dirname(log.path) for log in files}) == 1


def _absent(files: Sequence[LogFile]) -> Iterator[LogFile]:
    """Yield the segment that is missing behind the last one of a folder."""
    last, folder = files[-1], os.path.dirname(files[0].path)
    names = os.listdir(folder or os.curdir)
    base = max(_bases(SEGMENT, names), default=(-1, ""))[0]
    if last.segment != f"{base:020}{LOG_SUFFIX}":
        return
    index, of_index = max(_bases(INDEX, names), default=(-1, ""))
    reached = [*_bases(SNAPSHOT, names)]
    if EPOCHS in names:
        reached += ((int(offset), EPOCHS) for offset in EPOCH.findall(Path(folder, EPOCHS).read_bytes()))
    offset, shown_by = max(reached, default=(-1, ""))
    if index > base:
        # Nothing has to be read: a segment behind the last one is named by its index.
        offset, shown_by = index, of_index
    elif offset <= base or offset <= _end(last, base):
        return
    else:
        offset -= 1
    yield LogFile(
        os.path.join(folder, shown_by), 0, f"{offset:020}{LOG_SUFFIX}", last.topic, last.partition, is_absent=True
    )


def _end(log: LogFile, base: int) -> float:
    """Return the offset behind the last record of a segment; infinity where damage leaves that open."""
    size = os.path.getsize(log.path)  # what is beside it was read after it was listed: it may have grown up to there
    with log.open() as read_at:
        found = layout(read_at, size, size + 1, name=log.name)
        if found.last_at < 0 or not found.is_clear:
            return base if size == 0 else float("inf")
        header = read_at(found.last_at, HEADER_SIZE)
        # A batch of the old formats has the offset of its last message, one of today that of its first.
        return found.highest + 1 if header[MAGIC_AT] < 2 else read_header(header, 0, 0).last_offset + 1


def _bases(form: re.Pattern[str], names: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the base offset, as names have it, and the name of each file of a form."""
    for name in names:
        if (found := form.fullmatch(name)) is not None:
            yield int(found["base"]), name
