"""What a type of record does to the history of its group: two functions, before and after the group is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from coordinator_core.groups.group import GroupState
from coordinator_core.history.history_writer import HistoryWriter
from coordinator_core.records import AnyRecord


class RecordHandler(NamedTuple):
    """``after`` writes history once the record has changed the group, which is of type ``group_type``.

    It gets what ``before`` returned for the state that the record was about to change; None if nothing is needed.
    """

    group_type: str
    after: Callable[[HistoryWriter, AnyRecord, Any], None]
    before: Callable[[GroupState | None, AnyRecord], Any] | None = None
