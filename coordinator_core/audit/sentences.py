"""A sentence with its evidence."""

from typing import NamedTuple

from coordinator_core.records import LogPosition

OWN_LOG = "group log"


class Sentence(NamedTuple):
    """One sentence, the positions of the records that prove it, and the log of these positions (as in
    ``Cause.source``).
    """

    text: str
    evidence: tuple[LogPosition, ...] = ()
    source: str = OWN_LOG
