"""Segments that are not there although a broker's files beside them are: a copy without the segment that is written to.

A broker makes the indexes of a segment with it, and removes them with it; it rolls a segment when it has a record for
the next one. A segment behind all others is the one that is written to: no cleaner takes it away.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from coordinator_core.records import Family
from jobs.sources.files import LOG_SUFFIX, SWAP_SUFFIX, LogFile

SEGMENT: Final = re.compile(rf"(?P<base>\d{{20}})\{LOG_SUFFIX}(\{SWAP_SUFFIX})?")
INDEX: Final = re.compile(r"(?P<base>\d{20})\.(index|timeindex|txnindex)")


def with_absent(logs: Sequence[LogFile]) -> list[LogFile]:
    """Return the logs, each with the segment that is missing behind its last one.

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
    folder = os.path.dirname(files[0].path)
    names = sorted(os.listdir(folder or os.curdir))
    base, index = max(_bases(INDEX, names), default=("", ""))
    last, _ = max(_bases(SEGMENT, names), default=("", ""))
    if base > last != "":
        yield LogFile(
            os.path.join(folder, index), 0, base + LOG_SUFFIX, files[0].topic, files[0].partition, is_absent=True
        )


def _bases(form: re.Pattern[str], names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the base offset, as names have it, and the name of each file of a form."""
    for name in names:
        if (found := form.fullmatch(name)) is not None:
            yield found["base"], name
