"""The format of the tables: which releases can read them."""

from collections.abc import Mapping
from typing import Final

from coordinator_core.errors import InputError

FORMAT: Final = "coordinator_audit.format"
"""Table property: format version of the tables."""
FORMAT_VERSION: Final = 7
"""7: ``commit_summaries.rewinds`` have the metadata of the commit.
6: ``share_partitions`` has records on their way to a dead-letter queue.
5: ``rebalances.broker_away`` and ``share_partitions.next_offset_shown``.
4: ``quarantine`` names the group of a record whose value cannot be decoded.
3: ``log_records`` keeps bytes only where no row of another table gives them back.
2: more columns, such as ``group_epochs.topology``; decoded records of a group lie together in the files."""


def check_format(location: str, properties: Mapping[str, str]) -> None:
    """Raise InputError for tables of a format that this release does not have, by the properties of one of them."""
    version = int(properties.get(FORMAT, FORMAT_VERSION))
    if version > FORMAT_VERSION:
        raise InputError(
            f"the tables at {location} have format {version}, written by a newer release of coordinator-audit; "
            f"this release has format {FORMAT_VERSION}: use the newer release"
        )
    if version < FORMAT_VERSION:
        raise InputError(
            f"the tables at {location} have format {version}, written by an older release of coordinator-audit; "
            f"this release has format {FORMAT_VERSION}: ingest the dumps into new tables, or use the older release"
        )
