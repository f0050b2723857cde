"""Which groups there are, and of which type each is now: most have an epoch that is open."""

from typing import Final, NamedTuple

from jobs.tables.reader import MOST_LISTED, TableReader, Value

KNOWN: Final = """
SELECT DISTINCT group_id FROM $group_states WHERE cluster = :cluster
UNION SELECT DISTINCT group_id FROM $commit_summaries WHERE cluster = :cluster AND hour_ms IS NULL
"""
NEWEST: Final = """
SELECT {moment}group_id, group_type, epoch, state, opened_ms FROM (
  SELECT {moment}e.group_id, e.group_type, e.epoch, e.state, e.opened.timestamp_ms AS opened_ms, row_number() OVER (
      PARTITION BY {moment}e.group_id ORDER BY e.opened.timestamp_ms DESC, e.opened.offset DESC) AS nth
  FROM $group_epochs AS e {moments} WHERE e.cluster = :cluster AND {among}
) AS numbered WHERE nth = 1
"""
# Where the end of a conversion is missing, epochs of two types are open: there the newest one decides.
OPEN: Final = """
SELECT group_id, min(group_type) AS group_type FROM $group_epochs WHERE cluster = :cluster AND is_open
GROUP BY group_id HAVING min(group_type) = max(group_type)
"""
WITHOUT_OPEN: Final = f"""
SELECT k.group_id AS group_id FROM ({KNOWN}) AS k LEFT ANTI JOIN ({OPEN}) AS o ON k.group_id = o.group_id
"""
OF_OTHERS: Final = f"""
{OPEN} UNION ALL SELECT group_id, group_type
FROM ({NEWEST.format(moment="", moments="", among="e.group_id IN :others")}) AS n
"""
OF_ONE_TYPE: Final = """
SELECT e.group_id AS group_id, min(e.group_type) AS group_type FROM $group_epochs AS e WHERE e.cluster = :cluster
GROUP BY e.group_id HAVING min(e.group_type) {is_one} max(e.group_type)
"""
CONVERTED: Final = f"e.group_id IN (SELECT group_id FROM ({OF_ONE_TYPE.format(is_one='<>')}) AS converted)"
NEWEST_OF_CONVERTED: Final = NEWEST.format(moment="", moments="", among=CONVERTED)
LAST_TYPES: Final = f"""
{OF_ONE_TYPE.format(is_one="=")} UNION ALL SELECT group_id, group_type FROM ({NEWEST_OF_CONVERTED}) AS n
"""
"""The newest type of each group. Few are ever converted: only of these the epochs are put in order."""


class GroupTypes(NamedTuple):
    """A query for ``group_id`` and ``group_type`` of each group that has had an epoch, and its values."""

    text: str
    values: dict[str, Value]


def group_types(tables: TableReader, cluster: str) -> GroupTypes:
    """Return the newest type of each group. All epochs are read only if many groups have none that is open."""
    others = [group_id for (group_id,) in tables.tuples(WITHOUT_OPEN, cluster=cluster)]
    if len(others) > MOST_LISTED:
        return GroupTypes(LAST_TYPES, {})
    return GroupTypes(OF_OTHERS, {"others": others}) if others else GroupTypes(OPEN, {})
