"""The configurations that the assignment of a streams group depends on, as its records have them (KIP-1071)."""

from collections.abc import Mapping

from coordinator_core.assignors.inputs import StreamsConfigs
from coordinator_core.cluster.snapshot_settings import int_setting
from coordinator_core.errors import InputError
from coordinator_core.groups.streams.state import StreamsGroup, Topology

NUM_STANDBY_REPLICAS = "num.standby.replicas"
"""The configuration of the assignment that a release records with the group epoch."""
NUM_WARMUP_REPLICAS = "num.warmup.replicas"
ACCEPTABLE_RECOVERY_LAG = "acceptable.recovery.lag"
ASSIGNOR_NAME = "assignor.name"
"""More configurations of the assignment (KIP-1071), recorded in the same way."""

STICKY = "sticky"
HIGHLY_AVAILABLE = "highly_available"


def streams_configs(recorded: Mapping[str, str]) -> StreamsConfigs:
    """Return the configurations that assignors read; those that are not recorded have their defaults.

    Raises InputError for a recorded value that Kafka does not accept.
    """
    default = StreamsConfigs()
    return StreamsConfigs(
        _number(recorded, NUM_STANDBY_REPLICAS, default.num_standby_replicas),
        _number(recorded, NUM_WARMUP_REPLICAS, default.num_warmup_replicas),
        _number(recorded, ACCEPTABLE_RECOVERY_LAG, default.acceptable_recovery_lag),
    )


def _number(recorded: Mapping[str, str], name: str, default: int) -> int:
    text = recorded.get(name)
    if text is None:
        return default
    number = int_setting(text, 64 if name == ACCEPTABLE_RECOVERY_LAG else 32)
    if number is None or number < 0:
        raise InputError(f"invalid {name} {text[:40]!r}: Kafka accepts a number from 0 on")
    return number


def is_stateful(topology: Topology | None) -> bool:
    """Whether some task of the topology has state."""
    return topology is not None and any(subtopology.state_changelog_topics for subtopology in topology.subtopologies)


def shows_kip_1071(state: StreamsGroup) -> bool:
    """Whether the group has what KIP-1071 defines and no release up to 4.3 writes.

    These are: configurations of the assignment other than the number of standby tasks, warm-up tasks, sources by
    pattern, and the topics in a record of their own (type 18). A topology epoch proves nothing: a client may begin
    with any number.
    """
    return (
        not state.last_assignment_configs.keys().isdisjoint(
            (NUM_WARMUP_REPLICAS, ACCEPTABLE_RECOVERY_LAG, ASSIGNOR_NAME)
        )
        or state.subscription_metadata is not None
        or any(target.warmup for target in state.targets.values())
        or any(member.assigned.warmup for member in state.members.values())
        or (
            state.topology is not None
            and any(subtopology.source_topic_regex for subtopology in state.topology.subtopologies)
        )
    )


def assignor_name(recorded: Mapping[str, str], *, stateful: bool, kip_1071: bool) -> str:
    """Return the assignor: ``sticky`` in a release; in KIP-1071 the configured one, else the default for topologies
    with or without state.
    """
    if not kip_1071:
        return STICKY
    return recorded.get(ASSIGNOR_NAME) or (HIGHLY_AVAILABLE if stateful else STICKY)
