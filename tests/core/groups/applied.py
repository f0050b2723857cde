"""Records of one type of group, applied to its state."""

from collections.abc import Mapping
from typing import Any, Final

from coordinator_core.groups.connect import replay as connect
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.consumer import replay as consumer
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.group import GroupState
from coordinator_core.groups.share import replay as share
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams import replay as streams
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.groups.violations import Violations
from coordinator_core.records import CoordinatorRecord

HANDLERS: Final[Mapping[type[GroupState], Mapping[int, Any]]] = {
    ConnectGroup: connect.HANDLERS,
    ConsumerGroup: consumer.HANDLERS,
    ShareGroup: share.HANDLERS,
    StreamsGroup: streams.HANDLERS,
}


def apply(state: GroupState, record: CoordinatorRecord) -> Violations:
    """Change the state by one record of its own type of group; return the violations."""
    violations: Violations = HANDLERS[type(state)][record.type](state, record)
    return violations
