"""A described group as tables for people."""

from collections.abc import Iterable, Mapping

from coordinator_core.clients.known_clients import ClientCertainty, count_text
from coordinator_core.groups.describe import CERTAIN_GROUP
from coordinator_core.groups.described import DescribedClient, Description
from coordinator_core.groups.owners import UNKNOWN
from jobs.cli.output import Line, print_table, ranges
from jobs.formatting import number_ranges


def print_description(described: Description) -> None:
    """Print the fields of the group, then its members and offsets, and which facts about them are unknown."""
    own, line = _own(described), _fields(described)
    unknown = set(described["unknownFields"])
    if "describe_connect" in described:
        line |= {
            "assignment error": own["assignmentError"] or None,
            "work": UNKNOWN if "work" in unknown else _assigned(own["work"]),
            "unassigned": _assigned(own["unassigned"]) or None,
        }
    libraries = described.get("clients", {})
    if libraries:
        leads = (f"{member} ({_library(told)})" for member, told in libraries.items() if told["leads"])
        line |= {"leader": next(leads, None), "clients": count_text(told["client"] for told in libraries.values())}
    print_table("group", [line])
    if "topology_check" in described:
        print_table("topics do not fit the topology", [described["topology_check"]])
    if "migration" in described:
        moves = described["migration"]
        refusals = {
            name: "; ".join(moves[name]) or None for name in ("refusedByReleases", "refusedByDocument", "notShown")
        }
        print_table("migration", [{"to": moves["to"], **refusals}])
    if "join_traffic" in described:
        sent = described["join_traffic"]
        figures = {"metadata bytes": sent["metadataBytes"], "assignment bytes": sent["assignmentBytes"]}
        print_table("one rebalance sends", [{**figures, "all bytes": sent["rebalanceBytes"]}])
    if "settings" in described:
        print_table("own settings", described["settings"] or [{"name": UNKNOWN, "value": UNKNOWN}])
    members = [_member(member, unknown, libraries) for member in own.get("members") or ()]
    columns = list(members[0]) if members else UNKNOWN_COLUMNS
    members += [dict.fromkeys(columns, UNKNOWN) | {"member": member} for member in described["unknownMembers"]]
    if members or "members" in described["incompleteLists"]:
        by_id = ", topics named by their ids" if "unnamedTopics" in described else ""
        doubted = described.get("topicsInDoubt")
        may_be_gone = "" if doubted is None else f", of topics that may be gone: {', '.join(doubted)}"
        print_table(_title("members", described) + by_id + may_be_gone, members)
    if own.get("subtopologies"):
        print_table("subtopologies", [_subtopology(subtopology) for subtopology in own["subtopologies"]])
    _print_offsets(described)


def print_overview(groups: Iterable[Description]) -> None:
    """Print one line for each group: its fields, and how many members and offsets it has."""
    print_table("groups", [{**_fields(group), **_counts(group)} for group in groups])


def _own(described: Description) -> Line:
    """Return the description of the group's type that says most; empty if there is none."""
    parts: Line = described
    return next((parts[part] for part in _DESCRIBES if "groupId" in parts.get(part, ())), {})


def _fields(described: Description) -> dict[str, object]:
    fields: dict[str, object] = {**_own(described), **described["listing"]}
    fields |= {name: UNKNOWN for name in described["unknownFields"] if "." not in name}
    return {
        "group": fields["groupId"],
        "type": fields["type"],
        "state": fields["groupState"],
        "state as of": described["stateAsOf"],
        "protocol": fields["protocol"] or None,
        "assignor": fields.get("partitionAssignor") or None,
        "epoch": fields.get("groupEpoch"),
        "target epoch": fields.get("targetAssignmentEpoch"),
        "topology epoch": fields.get("topologyEpoch"),
        "certainty": None if described["certainty"] == CERTAIN_GROUP else described["certainty"],
    }


def _counts(described: Description) -> Line:
    """Return how many members and offsets a group has; unknown where a list may lack some."""
    lists = {
        "members": (_own(described).get("members") or (), described["unknownMembers"]),
        "offsets": (described.get("offsets") or (), described["unknownOffsets"]),
    }
    incomplete = described["incompleteLists"]
    return {name: UNKNOWN if doubts or name in incomplete else len(known) for name, (known, doubts) in lists.items()}


def _subtopology(subtopology: Line) -> Line:
    """Return a line of the topology of a streams group: internal topics with the number of their partitions."""

    def internal(topics: Mapping[str, Line]) -> str | None:
        return " ".join(f"{name} ({topic['partitions'] or '?'})" for name, topic in topics.items()) or None

    return {
        "subtopology": subtopology["subtopologyId"],
        "sources": " ".join(subtopology["sourceTopics"]) or None,
        "repartition sources": internal(subtopology["repartitionSourceTopics"]),
        "repartition sinks": " ".join(subtopology["repartitionSinkTopics"]) or None,
        "changelogs": internal(subtopology["stateChangelogTopics"]),
    }


def _print_offsets(described: Description) -> None:
    offsets, unknown = described.get("offsets"), described["unknownOffsets"]
    if offsets is not None:
        columns = next((list(value) for value in offsets.values() if value), ["offset"])
        lines = [{"partition": name, **dict.fromkeys(columns), **(value or {})} for name, value in offsets.items()]
        lines += [{"partition": name, **dict.fromkeys(columns), "offset": UNKNOWN} for name in unknown]
        if lines:
            print_table(_title("offsets", described), lines)
    if described.get("share_partitions"):
        print_table("share partitions", without_counts(described["share_partitions"]))


def without_counts(partitions: Iterable[Line]) -> list[Line]:
    """Return the lines of a table: delivery counts are a list, which does not fit into one."""
    return [{name: value for name, value in partition.items() if name != "counts"} for partition in partitions]


def _title(part: str, described: Description) -> str:
    title = part.replace("_", " ")
    return f"{title}, incomplete" if part in described["incompleteLists"] else title


# Where a type has several descriptions, the one that says most comes first.
_DESCRIBES = ("describe_consumer", "describe_share", "describe_streams", "describe_connect", "describe_classic")


UNKNOWN_COLUMNS = ("member", "instance", "client", "host", "rack", "epoch", "assigned", "target")
"""The columns of members where none is certain."""


def _member(member: Line, unknown: set[str], libraries: Mapping[str, DescribedClient]) -> Line:
    member_id: str = member.get("consumerId") or member["memberId"]

    def shown(field: str, value: object) -> object:
        return UNKNOWN if f"{member_id}.{field}" in unknown else value

    return {
        "member": member_id,
        "instance": shown("metadata", member.get("groupInstanceId") or member.get("instanceId")),
        "client": shown("metadata", member["clientId"]),
        **({"library": _library(libraries[member_id])} if member_id in libraries else {}),
        "host": shown("metadata", member.get("host") or member.get("clientHost")),
        "rack": shown("metadata", member["rackId"]),
        **({"url": shown("metadata", member["url"])} if "url" in member else {}),
        **(
            {name: shown("metadata", value) for name, value in _thread(member).items()} if "processId" in member else {}
        ),
        **({"state": shown("assignment", member["state"])} if "url" in member else {}),
        "epoch": shown("assignment", member["memberEpoch"]),
        "assigned": shown("assignment", _assigned(member["assignment"])),
        "target": shown("targetAssignment", _assigned(member.get("targetAssignment"))),
    }


def _library(told: DescribedClient) -> str:
    """Return the name of a client library, and how sure it is where it is not certain: ``franz-go (likely)``."""
    return f"{told['client']} (likely)" if told["certainty"] == ClientCertainty.LIKELY else told["client"]


def _thread(member: Line) -> Line:
    """Return what only members of streams groups have."""
    endpoint, tags = member["userEndpoint"], member["clientTags"]
    return {
        "process": member["processId"],
        "endpoint": None if endpoint is None else f"{endpoint['host']}:{endpoint['port']}",
        "tags": None if not tags else " ".join(f"{key}={value}" for key, value in sorted(tags.items())),
        "topology epoch": member["topologyEpoch"],
    }


def _assigned(assignment: Line | None) -> str | None:
    """Return partitions, tasks by role as ``active 0_1 0_2``, or connectors with their tasks."""
    if assignment is None:
        return None
    if "topicPartitions" in assignment:
        return ranges(assignment["topicPartitions"])
    if "connectors" in assignment:
        return " ".join(
            part
            for part in (
                f"connectors {', '.join(assignment['connectors'])}" if assignment["connectors"] else "",
                f"tasks {ranges(assignment['tasks'])}" if assignment["tasks"] else "",
            )
            if part
        )
    roles = []
    for name, tasks in assignment.items():
        if tasks:
            units = (f"{task['subtopologyId']}_{number_ranges(task['partitions'])}" for task in tasks)
            roles.append(f"{name.removesuffix('Tasks')} {' '.join(units)}")
    return " ".join(roles)
