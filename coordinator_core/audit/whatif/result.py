"""The result of a comparison in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from coordinator_core.audit.whatif.replay import Comparison, WhatIfOutcome
from coordinator_core.audit.whatif.share import DeliveryComparison
from coordinator_core.durations import duration

SAME: Final = "The change makes no difference to these rebalances."
MEASURES: Final[dict[str, tuple[str, Callable[[int], str]]]] = {
    "rebalances": ("{} rebalances instead of {}", str),
    "moved": ("{} partitions or tasks moved instead of {}", str),
    "stopped": ("{} stopped instead of {}", str),
    "imbalance": ("a mean imbalance of {} instead of {}", str),
    "worst_imbalance": ("a worst imbalance of {} instead of {}", str),
    "idle_ms": ("{} without an owner instead of {}", duration),
}
"""By field of an outcome: its words, and how a value is written."""


def result(compared: Comparison) -> str:
    """Return what a change would have done, against the same replay without it.

    A difference counts if it is larger than the error of the method: that between this replay and what happened.
    """
    if compared.hypothetical == compared.repeated:
        return SAME
    beyond = list(_differences(compared, beyond_error=True))
    within = list(_differences(compared, beyond_error=False))
    if not beyond:
        return f"No difference is larger than the error of the method: {', '.join(within)}."
    more = f" Not beyond the error of the method: {', '.join(within)}." if within else ""
    return f"With the change: {', '.join(beyond)}.{more}"


def _differences(compared: Comparison, *, beyond_error: bool) -> Iterator[str]:
    for name in WhatIfOutcome._fields:
        actual, repeated, supposed = (getattr(outcome, name) for outcome in compared)
        if None in (actual, repeated, supposed) or supposed == repeated:
            continue
        if (abs(supposed - repeated) > abs(repeated - actual)) is beyond_error:
            words, written = MEASURES[name]
            yield words.format(written(supposed), written(repeated))


def result_of_limit(compared: DeliveryComparison, limit: int) -> str:
    """Return how many records a share group would have given up with another delivery limit."""
    then = compared.hypothetical
    text = f"With a limit of {limit} the group would have given up {then.given_up} records instead of "
    text += f"{compared.actual.given_up}"
    if then.accepted:
        text += f"; {then.accepted} of them a later delivery did settle, or may still settle"
    if then.undecided:
        text += f"; how another delivery of {then.undecided} more would have ended is not known"
    return f"{text}."
