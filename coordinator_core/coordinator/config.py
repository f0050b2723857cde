"""The configurations that the coordinator reads: those of the broker, and those of groups within the broker's bounds.

Names are Kafka's with dots replaced by underscores, defaults those of Kafka 4.3 (GroupCoordinatorConfig, GroupConfig).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from coordinator_core.errors import InputError
from coordinator_core.groups.setting_bounds import BOUNDS

_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1
STREAMS_ASSIGNORS = ("highly_available", "sticky")
"""The task assignors that KIP-1071 names."""


class MigrationPolicy(StrEnum):
    """Which conversions between classic and consumer groups happen while members are present (KIP-848)."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Whether a classic group becomes a consumer group when a consumer joins."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        """Whether a consumer group becomes a classic group when its last consumer leaves."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


REBALANCE_PROTOCOLS = ("classic", "consumer", "share", "streams", "connect")
"""The values of ``group.coordinator.rebalance.protocols``; all are enabled unless a configuration says otherwise.

``connect`` is the feature flag of Connect on KIP-848, which no release has.
"""


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The broker's settings, times in milliseconds. The first of the consumer assignors is the default one.

    ``group_coordinator_rebalance_protocols`` are the enabled protocols; the classic one always is. The last six are of
    KIP-1071 and in no release. No streams assignor: the coordinator chooses one.
    """

    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_commit_timeout_ms: int = 5_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_coordinator_rebalance_protocols: tuple[str, ...] = REBALANCE_PROTOCOLS
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = _MAX_INT
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_max_size: int = _MAX_INT
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_share_session_timeout_ms: int = 45_000
    group_share_min_session_timeout_ms: int = 45_000
    group_share_max_session_timeout_ms: int = 60_000
    group_share_heartbeat_interval_ms: int = 5_000
    group_share_min_heartbeat_interval_ms: int = 5_000
    group_share_max_heartbeat_interval_ms: int = 15_000
    group_share_max_size: int = 200
    group_share_assignment_interval_ms: int = 1_000
    group_share_min_assignment_interval_ms: int = 0
    group_share_max_assignment_interval_ms: int = 15_000
    group_share_initialize_retry_interval_ms: int = 30_000
    group_share_record_lock_duration_ms: int = 30_000
    group_share_min_record_lock_duration_ms: int = 15_000
    group_share_max_record_lock_duration_ms: int = 60_000
    group_share_delivery_count_limit: int = 5
    group_share_min_delivery_count_limit: int = 2
    group_share_max_delivery_count_limit: int = 10
    group_share_partition_max_record_locks: int = 2_000
    group_share_min_partition_max_record_locks: int = 100
    group_share_max_partition_max_record_locks: int = 4_000
    share_coordinator_snapshot_update_records_per_snapshot: int = 500
    share_coordinator_cold_partition_snapshot_interval_ms: int = 300_000
    group_streams_session_timeout_ms: int = 45_000
    group_streams_min_session_timeout_ms: int = 45_000
    group_streams_max_session_timeout_ms: int = 60_000
    group_streams_heartbeat_interval_ms: int = 5_000
    group_streams_min_heartbeat_interval_ms: int = 5_000
    group_streams_max_heartbeat_interval_ms: int = 15_000
    group_streams_max_size: int = _MAX_INT
    group_streams_num_standby_replicas: int = 0
    group_streams_max_standby_replicas: int = 2
    group_streams_initial_rebalance_delay_ms: int = 3_000
    group_streams_assignment_interval_ms: int = 1_000
    group_streams_min_assignment_interval_ms: int = 0
    group_streams_max_assignment_interval_ms: int = 15_000
    group_streams_acceptable_recovery_lag: int = 10_000
    group_streams_num_warmup_replicas: int = 2
    group_streams_max_warmup_replicas: int = 20
    group_streams_task_offset_interval_ms: int = 60_000
    group_streams_min_task_offset_interval_ms: int = 15_000
    group_streams_assignor_name: str | None = None

    @property
    def share_initialize_retry_ms(self) -> int:
        """How long the coordinator waits for share state: at least as long as a commit may take (4.3.1)."""
        return max(self.group_share_initialize_retry_interval_ms, self.offsets_commit_timeout_ms)

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> "BrokerConfig":
        """Return the defaults with these settings (Kafka's names) over them; raises InputError for invalid ones."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in settings.items():
            key = name.replace(".", "_")
            if key not in known:
                raise InputError(f"the coordinator has no configuration {name!r}")
            read: Callable[[str, Any], Any] = _OF_BROKERS.get(key, _int)
            values[key] = read(name, value)
        return cls(**values)


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The settings that hold for one group, in milliseconds where they are times."""

    consumer_session_timeout_ms: int
    consumer_heartbeat_interval_ms: int
    consumer_assignment_interval_ms: int
    share_session_timeout_ms: int
    share_heartbeat_interval_ms: int
    share_assignment_interval_ms: int
    share_record_lock_duration_ms: int
    share_delivery_count_limit: int
    share_partition_max_record_locks: int
    streams_session_timeout_ms: int
    streams_heartbeat_interval_ms: int
    streams_num_standby_replicas: int
    streams_initial_rebalance_delay_ms: int
    streams_assignment_interval_ms: int
    streams_acceptable_recovery_lag: int
    streams_num_warmup_replicas: int
    streams_task_offset_interval_ms: int
    streams_assignor_name: str | None
    share_auto_offset_reset: str = "latest"
    share_isolation_level: str = "read_uncommitted"
    share_renew_acknowledge_enable: bool = True

    @classmethod
    def default(cls, broker: BrokerConfig) -> "GroupConfig":
        """Return the settings of a group without settings of its own."""
        names = {field.name: f"group_{field.name}" for field in fields(cls)}
        return cls(
            **{name: getattr(broker, of_broker) for name, of_broker in names.items() if hasattr(broker, of_broker)}
        )

    @classmethod
    def of(cls, broker: BrokerConfig, settings: Mapping[str, object], *, kip_1071: bool = False) -> "GroupConfig":
        """Return the group's own settings over the broker's, each moved into the broker's bounds as Kafka 4.3 does.

        ``kip_1071`` allows what the document defines beyond the release, and its names, which begin with "group.".

        Raises:
            InputError: a name is unknown, a value is not a number, or it is below a fixed minimum.
        """
        values: dict[str, Any] = {}
        for name, value in settings.items():
            key = name.replace(".", "_")
            if kip_1071:
                key = key.removeprefix("group_")
            if key in _OTHER_GROUP_SETTINGS:
                continue
            if key in _OF_SHARE_PARTITIONS:
                values[key] = _OF_SHARE_PARTITIONS[key](name, str(value))
                continue
            if kip_1071 and key == "streams_assignor_name":
                values[key] = _streams_assignor(name, value)
                continue
            if key not in _BOUNDS or (key in _OF_KIP_1071 and not kip_1071):
                raise InputError(f"Unknown group config name: {name}")
            lowest, highest = _BOUNDS[key]
            number = _int(name, value, _MAX_LONG if key == "streams_acceptable_recovery_lag" else _MAX_INT)
            if isinstance(lowest, str):
                number = max(number, getattr(broker, lowest))
            elif number < lowest:
                raise InputError(f"{name}: {number} is too small")
            values[key] = min(number, getattr(broker, highest)) if highest else number
        return replace(cls.default(broker), **values)


_BOUNDS: dict[str, tuple[int | str, str | None]] = {
    name.replace(".", "_"): (
        lowest.replace(".", "_") if isinstance(lowest, str) else lowest,
        highest and highest.replace(".", "_"),
    )
    for name, (lowest, highest) in BOUNDS.items()
} | {"streams_initial_rebalance_delay_ms": (0, None)}
"""Lowest and highest value of each setting: a number, or the field of the broker's setting (None: no bound)."""
_OF_KIP_1071 = frozenset(
    ("streams_acceptable_recovery_lag", "streams_num_warmup_replicas", "streams_task_offset_interval_ms")
)
"""Settings that the document defines beyond the release."""
_OTHER_GROUP_SETTINGS = frozenset(
    ("consumer_assignor_offload_enable", "share_assignor_offload_enable", "streams_assignor_offload_enable")
)
"""Settings of a group that change nothing in its log."""


def _one_of(*allowed: str) -> Callable[[str, str], str]:
    def check(name: str, value: str) -> str:
        if value not in allowed:
            raise InputError(f"{name}: {value!r} is none of {', '.join(allowed)}")
        return value

    return check


def _reset(name: str, value: str) -> str:
    if value not in ("earliest", "latest") and duration_ms(value) is None:
        raise InputError(f"{name}: {value!r} is none of earliest, latest, by_duration:PT...")
    return value


def duration_ms(reset: str) -> int | None:
    """Return how far before the first fetch a ``share.auto.offset.reset`` of the form by_duration:P1DT2H3M4S goes; None
    for others.
    """
    parts = _DURATION.fullmatch(reset)
    if parts is None or not any(parts.groups()):
        return None
    days, hours, minutes, seconds = (float(group or 0) for group in parts.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000)


_DURATION = re.compile(
    # A long has no more digits, and Kafka takes no larger number.
    r"by_duration:P(?:(\d{1,19})D)?(?:T(?=\d)(?:(\d{1,19})H)?(?:(\d{1,19})M)?(?:(\d{1,19}(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)


_OF_SHARE_PARTITIONS: dict[str, Callable[[str, str], str | bool]] = {
    "share_auto_offset_reset": _reset,
    "share_isolation_level": _one_of("read_committed", "read_uncommitted"),
    "share_renew_acknowledge_enable": lambda name, value: _one_of("true", "false")(name, value.lower()) == "true",
}
"""Settings that only the leaders of share partitions read, and that no broker setting bounds."""


def _int(name: str, value: Any, most: int = _MAX_INT) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}: {value!r} is not a whole number") from None
    if not -most - 1 <= number <= most:
        raise InputError(f"{name}: {number} does not fit into {most.bit_length() + 1} bits")
    return number


def _words(name: str, value: Any) -> tuple[str, ...]:
    return tuple(str(word).strip() for word in (value.split(",") if isinstance(value, str) else value))


def _protocols(name: str, value: Any) -> tuple[str, ...]:
    protocols = _words(name, value)
    for protocol in protocols:
        _one_of(*REBALANCE_PROTOCOLS)(name, protocol)
    if "classic" not in protocols:
        raise InputError(f"{name}: the protocol 'classic' cannot be disabled")
    return protocols


def _streams_assignor(name: str, value: Any) -> str | None:
    return None if value is None else _one_of(*STREAMS_ASSIGNORS)(name, value)


def _policy(name: str, value: Any) -> MigrationPolicy:
    policy = str(value).lower()
    return MigrationPolicy(policy if policy in set(MigrationPolicy) else _one_of(*MigrationPolicy)(name, value))


_OF_BROKERS: dict[str, Callable[[str, Any], Any]] = {
    "group_consumer_assignors": _words,
    "group_coordinator_rebalance_protocols": _protocols,
    "group_consumer_migration_policy": _policy,
    "group_streams_assignor_name": _streams_assignor,
    "group_streams_acceptable_recovery_lag": lambda name, value: _int(name, value, _MAX_LONG),
}
"""How the settings of brokers are read that are no int32."""
