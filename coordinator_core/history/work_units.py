"""What a group shares out: partitions, tasks and connectors, by one name in the whole project."""

from __future__ import annotations

from typing import NamedTuple


class WorkUnit(NamedTuple):
    """One partition of a topic, one task, or one connector.

    ``role`` is partition, active, standby, warmup, connector or task; it is empty where only partitions, or only
    connectors and tasks, can be meant. ``name`` is a topic (name or id, as the context has it), a subtopology or a
    connector. ``number`` is that of the partition or task, -1 for a connector itself.
    """

    role: str
    name: str
    number: int
