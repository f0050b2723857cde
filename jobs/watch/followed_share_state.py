"""The share state of one group in a log that is still written (KIP-932)."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.folds.share_deliveries import DeliverySum, ShareDelivery
from coordinator_core.audit.group_audit import ShareAudit
from coordinator_core.groups.violations import Violation
from coordinator_core.history.rows import SharePartitionRow
from coordinator_core.records import AnyRecord

MOST_VIOLATIONS = 100
"""The newest broken rules that are kept."""

Unit = tuple[str, int]
"""Topic id and partition."""


@dataclass(slots=True)
class FollowedShareState:
    """The share partitions of a group: final rows are summed up, and not kept."""

    audit: ShareAudit
    sums: dict[Unit, DeliverySum] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    findings: list[FindingRow] = field(default_factory=list)
    """Those of the last look, of a group that is in no log of groups."""
    is_changed: bool = True

    def feed(self, record: AnyRecord) -> list[Violation]:
        """Take the next record; return the rules that it breaks."""
        self.is_changed = True
        broken = []
        for row in self.audit.feed(record):
            if isinstance(row, SharePartitionRow):
                unit = row.topic_id, row.partition
                total = self.sums.get(unit)
                if total is None:
                    total = self.sums[unit] = DeliverySum.before(row)
                total.add(row)
            else:
                broken.append(row)
        if broken:
            self.violations = [*self.violations, *broken][-MOST_VIOLATIONS:]
        return broken

    def rows(self) -> Iterator[ShareDelivery | Violation]:
        """Yield what findings need: the deliveries as of now, and broken rules."""
        yield from self.violations
        current = {(row.topic_id, row.partition): row for row in self.audit.open_rows()}
        for unit, total in self.sums.items():
            if unit not in current:
                yield total.delivery(None)
        for unit, row in current.items():
            known = self.sums.get(unit) or DeliverySum.before(row)
            # A copy: the open row is added for this look only, and is final, or another one, at the next.
            total = replace(known, given_up=list(known.given_up))
            total.add(row)
            yield total.delivery(row)
