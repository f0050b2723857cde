"""What a followed log gave since it was last asked: the rows of one log partition, in the order of their offsets."""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator_core.cluster.metadata_log import Snapshot
from coordinator_core.records import Family
from jobs.sources.log_reader import LogRow


class LogPlace(NamedTuple):
    """A log partition."""

    topic: str
    family: Family
    partition: int

    def __str__(self) -> str:
        """The name of the partition, as that of its folder."""
        return f"{self.topic}-{self.partition}"

    @property
    def is_placed(self) -> bool:
        """Whether partition and offsets are those of the log: a watch reads nothing else."""
        return True


class NewRows(NamedTuple):
    """New rows of a log partition.

    ``from_start``: the log was followed from the first record of the partition on. ``is_lost``: records before these
    rows cannot be read. ``hides_control``: control records, which end transactions, are not among the rows.
    ``snapshot``: what the metadata log had before these rows, which are its first ones then.
    """

    place: LogPlace
    rows: Sequence[LogRow]
    from_start: bool
    is_lost: bool = False
    hides_control: bool = False
    snapshot: Snapshot | None = None
