"""Computing and writing a target, as far as all groups with epochs (consumer, share, streams) do it in the same way."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from coordinator_core.assignors.inputs import GroupSpecs
from coordinator_core.assignors.profiles import DEFAULT, Profile
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.errors import AssignorError

WrittenT = TypeVar("WrittenT")
ComputedT = TypeVar("ComputedT")
ASSIGNOR_EXCEPTIONS = ("PartitionAssignorException", "TaskAssignorException")
"""What an assignor of Kafka throws on an input that it refuses; any other exception is a fault in it."""


def compute_target(
    assignor: str, spec: GroupSpecs, topics: TopicImage, epoch: int, profile: Profile = DEFAULT
) -> Mapping[str, Any]:
    """Return what each member is to have by this assignor; members without partitions or tasks may be missing.

    Raises:
        ApiError: the assignor throws; if with the exception that is meant for it, the message names ``epoch``.
    """
    try:
        return assign(assignor, spec, topics, profile).members
    except AssignorError as error:
        message = error.message
        if error.kind in ASSIGNOR_EXCEPTIONS:
            message = f"Failed to compute a new target assignment for epoch {epoch}: {message}"
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error


def changed_targets(
    members: Iterable[str],
    written: Mapping[str, WrittenT],
    computed: Mapping[str, ComputedT],
    nothing: ComputedT,
    is_same: Callable[[WrittenT, ComputedT], bool],
) -> Iterator[tuple[str, ComputedT]]:
    """Yield each member whose target has to be written, with that target: the log does not have an equal one."""
    for member_id in members:
        target = computed.get(member_id, nothing)
        before = written.get(member_id)
        if before is None or not is_same(before, target):
            yield member_id, target
