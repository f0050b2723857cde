"""How long the steps of a night will take, by what they took in the last one: for whoever watches a night."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jobs.tables.engine import Engine

LAST_NIGHT = """
SELECT s.step, s.seconds FROM $nightly_steps AS s
JOIN (SELECT max(night) AS night FROM $nightly_steps WHERE step = 'ingest' AND ended = 'done') AS last
  ON s.night = last.night
WHERE s.ended <> 'failed'
"""

RECORDS = """
SELECT sum(records) AS records FROM $runs AS r
JOIN (SELECT max(run_id) AS run_id FROM $runs WHERE job = 'ingest') AS newest ON r.run_id = newest.run_id
WHERE r.job = 'ingest'
"""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds of each step of the last night that took records in, and how many it took; empty: there was none."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    records: int = 0

    def left(self, steps: Sequence[str], records: int | None = None) -> float | None:
        """Return the seconds that these steps will take; None: one of them was not in the last night.

        ``records``: how many this night has taken in, if it is known. More records than last time take longer in
        proportion; fewer do not save what a step costs anyway.
        """
        if not steps or not self.seconds.keys() >= set(steps):
            return None
        more = 1.0 if not records or not self.records else max(1.0, records / self.records)
        return round(more * sum(self.seconds[step] for step in steps), 1)


def last_night(engine: Engine) -> StepTimes:
    """Return what the last night took; empty if there was none."""
    if not engine.exists("nightly_steps") or not engine.exists("runs"):
        return StepTimes()
    seconds = {row["step"]: row["seconds"] for row in engine.rows(LAST_NIGHT)}
    (newest,) = engine.rows(RECORDS)
    return StepTimes(seconds, newest["records"] or 0)
