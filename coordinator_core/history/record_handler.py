"""What a type of record does to the history of its group: a pair of functions around the change of the group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from coordinator_core.groups.group import GroupState
from coordinator_core.history.history_writer import HistoryWriter
from coordinator_core.records import AnyRecord


class RecordHandler(NamedTuple):
    """``after`` writes history when the record has changed the group, of the type ``group_type``.

    It is given what ``before`` took from the state that the record was about to change; None where nothing is needed.
    """

    group_type: str
    after: Callable[[HistoryWriter, AnyRecord, Any], None]
    before: Callable[[GroupState | None, AnyRecord], Any] | None = None
