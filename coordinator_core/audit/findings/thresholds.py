"""The thresholds of findings."""

from dataclasses import dataclass
from typing import Annotated, NoReturn

from pydantic import BeforeValidator, Field

from coordinator_core.audit.finding_rows import FindingKind
from coordinator_core.cluster.client_view import METADATA_AGE_MS


def _refuse(value: object) -> NoReturn:
    raise ValueError("set audit.metadata_age_ms")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """All thresholds; ``conf/defaults.yaml`` (section ``findings``) explains them and has their defaults. Times
    are in ms. ``off`` are the kinds that are not looked for. ``metadata_age_ms`` is that of ``AuditSettings``.
    """

    off: tuple[FindingKind, ...]
    coordinator_away_ms: int
    storm_rebalances: int
    storm_window_ms: int
    storm_groups: int
    never_converges_ms: int
    failed_generations: int
    not_ready_ms: int
    slow_rebalance_ms: int
    flapping_stays: int
    flapping_stay_ms: int
    flapping_window_ms: int
    rolling_deploy_rebalances: int
    rolling_deploy_clients: int
    rolling_deploy_gap_ms: int
    stood_still_members: int
    stood_still_groups: int
    configs_differ_times: int
    imbalance_units: int
    imbalance_ratio: float
    uneven_ms: int
    zombie_ms: int
    rewind_window_ms: int
    commit_turns: int
    commits_per_partition_minute: int
    flood_commits: int
    short_lived_groups: int
    short_lived_ms: int
    open_transaction_ms: int
    record_bytes: int
    warmup_ms: int
    topology_update_ms: int
    share_redelivered: int
    share_redelivered_ratio: float
    share_stalled_ms: int
    share_initializing_ms: int
    metadata_age_ms: Annotated[int, Field(exclude=True), BeforeValidator(_refuse)] = METADATA_AGE_MS
