"""What the page is answered, beside the data of the report. Times are in milliseconds since the epoch."""

from typing import Annotated, NamedTuple


class OwnerAt(NamedTuple):
    """A member that owned something at a moment."""

    member_id: Annotated[str, "the member"]
    client_id: Annotated[str | None, "its client id; null: not in the log"]
    units: Annotated[int, "partitions, tasks or connectors that it owned"]


class GroupAt(NamedTuple):
    """One group at a moment."""

    group_id: Annotated[str, "the group"]
    group_type: Annotated[str, "CLASSIC, CONSUMER, SHARE, STREAMS, CONNECT, or OFFSETS (only offset commits)"]
    epoch: Annotated[int | None, "epoch or generation then; null: none, or not in the log"]
    since_ms: Annotated[int | None, "when that epoch was opened"]
    members: Annotated[int, "members that were in the group then"]
    rebalances: Annotated[int, "rebalances up to then"]
    rebalancing_to: Annotated[int | None, "epoch of a rebalance that was in progress then; null: none was"]
    findings: Annotated[int, "findings about the group, of any time"]
    state: Annotated[
        str | None,
        "REBALANCING while a rebalance was in progress, else the state of that epoch, such as STABLE; null: not known",
    ]
    owners: Annotated[tuple[OwnerAt, ...], "who owned most then, at most 32 members"]
    owning: Annotated[int, "members that owned something then"]
    owned: Annotated[int, "what they owned; what two owned counts twice"]
    lag: Annotated[
        int | None,
        "lag of its partitions together, by the newest end offsets that were seen until then; null: not known",
    ]
    lag_ms: Annotated[int | None, "when those were seen"]


class GroupsPage(NamedTuple):
    """Some of the groups, by id."""

    groups: Annotated[tuple[GroupAt, ...], "the groups at the moment"]
    than: Annotated[tuple[GroupAt, ...], "the same groups at the other moment; empty: none was asked for"]
    first: Annotated[int, "number of the first of them"]
    seen: Annotated[int, "number of all groups that were asked for"]


class ServedOffset(NamedTuple):
    """A committed offset at a moment."""

    topic: Annotated[str, "topic name"]
    partition: Annotated[int, "partition"]
    offset: Annotated[int | None, "committed offset; null: it is not known"]
    committed_ms: Annotated[int | None, "time of the record that committed it"]
    log_partition: Annotated[int | None, "partition of the log with that record"]
    log_offset: Annotated[int | None, "its offset in the log"]


class ServedSetting(NamedTuple):
    """A setting at a moment."""

    name: Annotated[str, "name of the setting"]
    value: Annotated[str, "its value"]


class ServedSettings(NamedTuple):
    """What is set at a moment."""

    group: Annotated[
        tuple[ServedSetting, ...] | None,
        "what is set for the group itself, by name; null: the metadata log does not show it",
    ]
    brokers: Annotated[
        tuple[ServedSetting, ...],
        "what all brokers have of the settings about groups, by name; one that no snapshots show then is not here",
    ]
    shown: Annotated[
        tuple[ServedSetting, ...],
        "what snapshots show for the group, defaults of the brokers included, by name; one that none shows is not here",
    ]


class FoundRow(NamedTuple):
    """Where a text was found."""

    kind: Annotated[str, "group, member, host or topic"]
    name: Annotated[str, "the name in which the text is"]
    group_id: Annotated[str | None, "the group that it leads to; null: none"]
    at_ms: Annotated[int | None, "the newest moment of it; null: it has none"]
