"""Where a watch reads, and what a followed log gave since it was last asked: rows in the order of their offsets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import Family
from jobs.sources.log_reader import LogRow

if TYPE_CHECKING:
    from jobs.watch.followed_log import Reached
    from jobs.watch.live_broker import Look, TakenSnapshot


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
    """

    place: LogPlace
    rows: Sequence[LogRow]
    from_start: bool
    is_lost: bool = False
    hides_control: bool = False


class Source(Protocol):
    """Where new rows come from. What it answers here is what segments below folders do: they are no cluster that could
    be asked, each poll reads all that there is, and nothing is held open between two polls.
    """

    def identify(self) -> str:
        """Return what identifies the cluster; empty: nothing but its records does."""
        return ""

    @abstractmethod
    def begin(self, reached: Mapping[LogPlace, Reached]) -> None:
        """Begin where a former watch stopped, in partitions that it did not read at their first record."""

    @property
    def is_caught_up(self) -> bool:
        """Whether what was there at the beginning has been read."""
        return True

    @property
    def is_settled(self) -> bool:
        """Whether the rows of the last poll do not end in the middle of what a coordinator wrote at once: batches come
        as a whole.
        """
        return True

    @abstractmethod
    def poll(self) -> Iterator[NewRows]:
        """Yield what is new."""

    @abstractmethod
    def places(self) -> Collection[LogPlace]:
        """Return the log partitions that are there, empty ones included."""

    @property
    def has_all(self) -> bool:
        """Whether these are all partitions of their topics: folders do not tell."""
        return False

    def snapshot(self) -> TakenSnapshot | None:
        """Return topics and settings of the cluster as they are now; None: the source does not show them."""
        return None

    def look(self, partitions: Callable[[], Collection[TopicPartition]]) -> Look | None:
        """Return what brokers say of the cluster, and of these partitions, if something new is there; None: later, or
        never.
        """
        return None

    def close(self) -> None:
        """Let go of it."""
        return
