"""What findings about a cluster are made from: sessions that ended and whose members came back under the same member
ids, members that were lost as their coordinator was away, the lives of its groups, and for how long these had members.
"""

from collections.abc import Iterator

from coordinator_core.audit.findings.coordinator_away import GroupLife, LostMember
from coordinator_core.audit.findings.many_groups import LOST, GroupStay, LostSession
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.memberships import BY_ITSELF, COORDINATOR_AWAY
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, LogPosition
from jobs.tables.reader import TableReader

# Who leaves, or polls too late, closes its session itself: it has lost none, even if it comes back under the same id.
RETURNED = (
    "SELECT group_id, member_id, client_host, gone_partition, gone_offset, gone_ms, back_ms, history_complete FROM ("
    "SELECT m.group_id, m.member_id, m.client_host, m.went_by, m.hint, m.history_complete, "
    "m.left.partition AS gone_partition, m.left.offset AS gone_offset, m.left.timestamp_ms AS gone_ms, "
    "lead(m.joined.timestamp_ms) "
    "OVER (PARTITION BY m.group_id, m.member_id ORDER BY m.joined.offset) AS back_ms "
    "FROM $memberships AS m WHERE m.cluster = :cluster) AS r "
    "WHERE went_by IN :gone AND "
    + " AND ".join(f"NOT coalesce(hint LIKE '{how}%', FALSE)" for how in BY_ITSELF)
    + " AND gone_ms IS NOT NULL AND back_ms IS NOT NULL "
    "ORDER BY gone_ms, gone_partition, gone_offset, member_id"
)


LIVES = f"""
SELECT group_id, CASE WHEN group_type = '{GroupType.CONNECT}' THEN '{CONNECT_LOG}' ELSE '{GROUP_LOG}' END AS topic,
  e.opened.partition AS log_partition, min(e.opened.timestamp_ms) AS first_ms,
  -- Counts of a column leave nulls out: fewer ends than epochs mean that one is open, so that there is no last time.
  CASE WHEN count(e.ended.timestamp_ms) = count(*) THEN max(e.ended.timestamp_ms) END AS last_ms,
  min(CASE WHEN e.history_complete THEN e.opened.timestamp_ms END) AS whole_ms
FROM $group_epochs AS e WHERE e.cluster = :cluster
GROUP BY group_id, CASE WHEN group_type = '{GroupType.CONNECT}' THEN '{CONNECT_LOG}' ELSE '{GROUP_LOG}' END,
  e.opened.partition
ORDER BY group_id, topic, log_partition
"""


LOST_AWAY = (
    "SELECT m.group_id, m.left.timestamp_ms AS left_ms, m.hint FROM $memberships AS m "
    f"WHERE m.cluster = :cluster AND m.hint LIKE '{COORDINATOR_AWAY}%' AND m.left.timestamp_ms IS NOT NULL "
    "ORDER BY m.group_id, left_ms, m.hint"
)


# Members and departures are counted in one pass with the first join: as many of both means that nobody is left.
STAYS = """
SELECT group_id, log_partition, log_offset, first_ms, left_ms FROM (
  SELECT m.group_id, m.joined.partition AS log_partition, m.joined.offset AS log_offset,
    m.joined.timestamp_ms AS first_ms,
    row_number() OVER (PARTITION BY m.group_id ORDER BY m.joined.timestamp_ms, m.joined.offset) AS nth,
    max(m.left.timestamp_ms) OVER (PARTITION BY m.group_id) AS left_ms,
    count(*) OVER (PARTITION BY m.group_id) AS members,
    count(m.left.timestamp_ms) OVER (PARTITION BY m.group_id) AS gone
  FROM $memberships AS m WHERE m.cluster = :cluster
) AS s WHERE nth = 1 AND members = gone ORDER BY group_id
"""


def stored_stays(tables: TableReader, cluster: str) -> Iterator[GroupStay]:
    """Yield over which time the groups of a cluster that have no member left had some."""
    for row in tables.rows(STAYS, cluster=cluster):
        at = LogPosition(row["log_partition"], row["log_offset"], row["first_ms"])
        yield GroupStay(row["group_id"], at, row["left_ms"])


def stored_lost_members(tables: TableReader, cluster: str) -> Iterator[LostMember]:
    """Yield the members that may have lost their sessions as their coordinator was away."""
    for row in tables.rows(LOST_AWAY, cluster=cluster):
        yield LostMember(**row)


def stored_lives(tables: TableReader, cluster: str) -> Iterator[GroupLife]:
    """Yield over which times the groups of a cluster were in the partitions of coordinators' logs."""
    for row in tables.rows(LIVES, cluster=cluster):
        place, first_ms = (row["topic"], row["log_partition"]), row["first_ms"]
        yield GroupLife(row["group_id"], *place, first_ms, row["last_ms"], row["whole_ms"] == first_ms)


def stored_lost_sessions(tables: TableReader, cluster: str) -> Iterator[LostSession]:
    """Yield them by the time at which they ended, as ``stood_still`` takes them; one batch of rows is in memory."""
    for row in tables.rows(RETURNED, cluster=cluster, gone=sorted(LOST)):
        yield LostSession(
            row["group_id"],
            row["member_id"],
            row["client_host"],
            LogPosition(row["gone_partition"], row["gone_offset"], row["gone_ms"]),
            row["back_ms"],
            row["history_complete"],
        )
