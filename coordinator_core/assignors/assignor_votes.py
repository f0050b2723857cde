"""Which server assignor a consumer group uses: the one that most of its members ask for (KIP-848)."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator_core.java.hash_codes import STRING
from coordinator_core.java.order import HashMap, TimelineHashMap


@dataclass(slots=True)
class AssignorVotes:
    """How many members ask for each assignor. The order is the coordinator's own, which decides if votes are equal."""

    counts: TimelineHashMap[str, int] = field(default_factory=lambda: TimelineHashMap(STRING))

    def change(self, old: str | None, new: str | None) -> None:
        """Count that a member changed the assignor it asks for (None: none)."""
        if old is not None:
            count = self.counts.get(old, 0) - 1
            if count > 0:
                self.counts[old] = count
            else:
                self.counts.pop(old, None)
        if new is not None:
            self.counts[new] = self.counts.get(new, 0) + 1

    def preferred(self, old: str | None, new: str | None) -> str | None:
        """Return what most members would ask for if one changed from ``old`` to ``new``; None if no member asks
        for an assignor.
        """
        counts: HashMap[str, int] = HashMap(STRING, len(self.counts) * 4 // 3 + 1)
        counts.update(self.counts)
        if old is not None:
            count = counts.get(old, 0) - 1
            if count > 0:
                counts[old] = count
            else:
                counts.pop(old, None)
        if new is not None:
            counts[new] = counts.compute_if_absent(new, int) + 1
        return max(counts, key=counts.__getitem__, default=None)
