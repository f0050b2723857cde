"""Whether a streams group's topology can run on the topics of one time, as a row says it (KIP-1071)."""

from typing import Annotated, NamedTuple

from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.groups.streams.topology import configure

READY = "READY"
FITS = "the known topics of that time fit the topology; the coordinator may have seen other topics"
NO_TOPICS = "the topics of that time are not in the logs; the cluster metadata log (__cluster_metadata) decides it"
NOT_WHOLE = "the metadata log is not whole: the coordinator may have seen other topics than the logs show"
NO_TOPOLOGY = "the record of the topology is not in the log; it decides which topics the group needs"


class TaskCount(NamedTuple):
    """How many tasks a subtopology has."""

    subtopology: Annotated[str, "its id"]
    tasks: Annotated[int, "its number of tasks: they are numbered from 0"]


class TopologyCheck(NamedTuple):
    """What a topology is on the topics of one time."""

    status: Annotated[
        str | None,
        "READY, MISSING_SOURCE_TOPICS, INCORRECTLY_PARTITIONED_TOPICS, MISSING_INTERNAL_TOPICS, INVALID_TOPOLOGY; "
        "null: unknown",
    ]
    detail: Annotated[str | None, "which topics, in the broker's words; if the status is unknown, what decides it"]
    tasks: Annotated[tuple[TaskCount, ...] | None, "tasks of each subtopology; null: they cannot be determined"]


def check_topology(group: StreamsGroup, topics: TopicImage | None, *, complete: bool = True) -> TopologyCheck:
    """Return what the group's topology is on these topics; None: they are not known.

    ``complete``: a topic that is not among them does not exist. Otherwise topics that are missing may exist, and others
    may be gone, or have come again with another number of partitions: no problem is proven.
    """
    if group.topology is None:
        return TopologyCheck(None, NO_TOPOLOGY, None)
    if topics is None:
        return TopologyCheck(None, NO_TOPICS, None)
    configured = configure(group.topology, topics)
    tasks = None
    if configured.has_tasks:
        tasks = tuple(TaskCount(name, subtopology.tasks) for name, subtopology in configured.subtopologies.items())
    if configured.problem is None:
        return TopologyCheck(READY, None, tasks)
    if not complete:
        return TopologyCheck(None, f"{NOT_WHOLE}. {configured.detail}", tasks)
    return TopologyCheck(configured.problem.value, configured.detail, tasks)


def reason(check: TopologyCheck | None) -> str:
    """Return why a group that is not ready is so: the status with its topics, or what is unknown."""
    if check is None:
        return f"its status is not known: {NO_TOPICS}"
    if check.status is None:
        return f"its status is not known: {check.detail}"
    if check.status == READY:
        return f"its status is not known: {FITS}"
    return f"{check.status}: {check.detail}"
