"""The configurations that the coordinator reads: those of the broker, and those of groups within the broker's bounds.

Names are Kafka's with dots replaced by underscores, defaults those of Kafka 4.3 (GroupCoordinatorConfig, GroupConfig).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from coordinator_core.errors import InputError

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


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The broker's settings, times in milliseconds. The first of the consumer assignors is the default one.

    The last six are of KIP-1071 and in no release. No streams assignor: the coordinator chooses one.
    """

    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080
    offsets_commit_timeout_ms: int = 5_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
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
    def of(cls, settings: Mapping[str, Any]) -> BrokerConfig:
        """Return the defaults with these settings (Kafka's names) over them; raises InputError for invalid ones."""
        known = {each.name for each in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in settings.items():
            key = name.replace(".", "_")
            if key not in known:
                raise InputError(f"the coordinator has no configuration {name!r}")
            if key == "group_consumer_assignors":
                values[key] = tuple(str(each).strip() for each in _list(value))
            elif key == "group_consumer_migration_policy":
                values[key] = _policy(name, value)
            elif key == "group_streams_assignor_name":
                values[key] = _streams_assignor(name, value)
            elif key == "group_streams_acceptable_recovery_lag":
                values[key] = _int(name, value, _MAX_LONG)
            else:
                values[key] = _int(name, value)
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
    streams_session_timeout_ms: int
    streams_heartbeat_interval_ms: int
    streams_num_standby_replicas: int
    streams_initial_rebalance_delay_ms: int
    streams_assignment_interval_ms: int
    streams_acceptable_recovery_lag: int
    streams_num_warmup_replicas: int
    streams_task_offset_interval_ms: int
    streams_assignor_name: str | None

    @classmethod
    def default(cls, broker: BrokerConfig) -> GroupConfig:
        """Return the settings of a group without settings of its own."""
        return cls(*(getattr(broker, f"group_{each.name}") for each in fields(cls)))

    @classmethod
    def of(cls, broker: BrokerConfig, settings: Mapping[str, Any], *, kip_1071: bool = False) -> GroupConfig:
        """Return the group's own settings over the broker's, each moved into the broker's bounds as Kafka 4.3 does.

        ``kip_1071`` allows what the document defines beyond the release, and its names, which begin with "group.".

        Raises:
            InputError: a name is unknown, a value is not a number, or it is below a fixed minimum.
        """
        values: dict[str, Any] = {}
        bounds = _BOUNDS | _BOUNDS_OF_KIP_1071 if kip_1071 else _BOUNDS
        for name, value in settings.items():
            key = name.replace(".", "_")
            if kip_1071:
                key = key.removeprefix("group_")
            if key in _OTHER_GROUP_SETTINGS:
                continue
            if kip_1071 and key == "streams_assignor_name":
                values[key] = _streams_assignor(name, value)
                continue
            if key not in bounds:
                raise InputError(f"Unknown group config name: {name}")
            lowest, highest = bounds[key]
            number = _int(name, value, _MAX_LONG if highest == _MAX_LONG else _MAX_INT)
            if isinstance(lowest, str):
                number = max(number, getattr(broker, lowest))
            elif number < lowest:
                raise InputError(f"{name}: {number} is too small")
            values[key] = min(number, getattr(broker, highest) if isinstance(highest, str) else highest)
        return replace(cls.default(broker), **values)


def _bounds(prefix: str, setting: str) -> tuple[str, str]:
    return f"group_{prefix}_min_{setting}", f"group_{prefix}_max_{setting}"


_BOUNDS: dict[str, tuple[str | int, str | int]] = {
    f"{prefix}_{setting}": _bounds(prefix, setting)
    for prefix in ("consumer", "share", "streams")
    for setting in ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms")
} | {
    "streams_num_standby_replicas": (0, "group_streams_max_standby_replicas"),
    "streams_initial_rebalance_delay_ms": (0, _MAX_INT),
}
"""Lowest and highest value of each setting: the broker's setting of that name, or a number."""
_BOUNDS_OF_KIP_1071: dict[str, tuple[str | int, str | int]] = {
    "streams_acceptable_recovery_lag": (0, _MAX_LONG),
    "streams_num_warmup_replicas": (0, "group_streams_max_warmup_replicas"),
    "streams_task_offset_interval_ms": ("group_streams_min_task_offset_interval_ms", _MAX_INT),
}
_OTHER_GROUP_SETTINGS = frozenset(
    (
        "consumer_assignor_offload_enable",
        "share_assignor_offload_enable",
        "share_auto_offset_reset",
        "share_delivery_count_limit",
        "share_isolation_level",
        "share_partition_max_record_locks",
        "share_record_lock_duration_ms",
        "share_renew_acknowledge_enable",
        "streams_assignor_offload_enable",
    )
)
"""Settings of a group that its coordinator does not read (share partitions and threads do)."""


def _int(name: str, value: Any, most: int = _MAX_INT) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}: {value!r} is no whole number") from None
    if not -most - 1 <= number <= most:
        raise InputError(f"{name}: {number} does not fit into {most.bit_length() + 1} bits")
    return number


def _list(value: Any) -> list[Any]:
    return value.split(",") if isinstance(value, str) else list(value)


def _streams_assignor(name: str, value: Any) -> str | None:
    if value is None or value in STREAMS_ASSIGNORS:
        return None if value is None else str(value)
    raise InputError(f"{name}: {value!r} is none of {', '.join(STREAMS_ASSIGNORS)}")


def _policy(name: str, value: Any) -> MigrationPolicy:
    try:
        return MigrationPolicy(str(value).lower())
    except ValueError:
        raise InputError(f"{name}: {value!r} is none of {', '.join(MigrationPolicy)}") from None
