"""The thresholds of findings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """All thresholds; ``conf/defaults.yaml`` (section ``findings``) explains them and has their defaults. Times
    are in ms.
    """

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
    rolling_deploy_rebalances: int
    rolling_deploy_clients: int
    rolling_deploy_gap_ms: int
    stood_still_members: int
    stood_still_groups: int
    fenced_times: int
    static_expired_times: int
    configs_differ_times: int
    imbalance_units: int
    imbalance_ratio: float
    unassigned_partitions: int
    empty_members: int
    uneven_ms: int
    needless_moves: int
    zombie_ms: int
    rewound_offsets: int
    rewind_window_ms: int
    reset_offsets: int
    commit_turns: int
    expired_partitions: int
    commits_per_partition_minute: int
    flood_commits: int
    short_lived_groups: int
    short_lived_ms: int
    open_transaction_ms: int
    record_bytes: int
    warmup_ms: int
    topology_update_ms: int
    share_archived: int
    share_redelivered: int
    share_redelivered_ratio: float
    share_stalled_ms: int
    share_initializing_ms: int
    share_state_orphaned: int
