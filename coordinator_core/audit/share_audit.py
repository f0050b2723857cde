"""Everything that is made of one group's records of the share state log in one pass: history and broken rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from coordinator_core.audit.known_rows import changed
from coordinator_core.audit.rules.share_state import judge_share_state
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.share.state_log import ShareStateRecord
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.rows import SharePartitionRow
from coordinator_core.history.share_partitions import OpenShareHistory, SharePartitionFold
from coordinator_core.records import AnyRecord
from coordinator_core.state_json import StateForm


@dataclass(slots=True)
class AuditedShareState:
    """All that is kept of a group's share state from one run to the next; ``known_rows``: see ``AuditedState``."""

    history: OpenShareHistory
    known_rows: bytes = b""


STATE_FORM: Final = StateForm(AuditedShareState, "state of share partitions")


class ShareAudit:
    """The share partitions of one group, changed record by record, as ``GroupAudit`` is for a group.

    The records may come partition by partition of the log: all records of a share partition lie in one of them.
    """

    __slots__ = ("_fold", "_known_rows")

    def __init__(self, fold: SharePartitionFold, known_rows: bytes = b"") -> None:
        self._fold = fold
        self._known_rows = known_rows

    @classmethod
    def begin(cls, group_id: str, topics: TopicHistory | None, coverage: Coverage) -> ShareAudit:
        """The fold of a group of whose share state nothing was read before."""
        return cls(SharePartitionFold(OpenShareHistory(group_id), topics, coverage))

    @classmethod
    def resume(cls, text: str, topics: TopicHistory | None, coverage: Coverage) -> ShareAudit:
        """Continue from what ``state`` returned; raises StateFormatError if it is of another version."""
        stored = STATE_FORM.decode(text)
        return cls(SharePartitionFold(stored.history, topics, coverage), stored.known_rows)

    def feed(self, record: AnyRecord, leader_epoch: int | None = None) -> list[SharePartitionRow | Violation]:
        """The rows that this record makes final; raises nothing. Feed each once, in offset order."""
        of_share_state = cast(ShareStateRecord, record)
        violations = judge_share_state(self._fold.known_before(of_share_state), of_share_state)
        return [*self._fold.feed(of_share_state), *violations]

    def open_rows(self) -> list[SharePartitionRow]:
        """Rows of what lasts as of the last record: a later run replaces them by their keys."""
        return list(self._fold.open_rows())

    def changed_rows(self) -> list[SharePartitionRow]:
        """Return the open rows without those that an earlier run, of which this one has the state, returned here."""
        rows, self._known_rows = changed(self._fold.open_rows(), self._known_rows)
        return rows

    def state(self) -> str:
        """Return what a later run needs to continue, as one JSON text."""
        return STATE_FORM.encode(AuditedShareState(self._fold.open_history, self._known_rows))
