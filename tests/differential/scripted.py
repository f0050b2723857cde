"""What the recorded clients did, as the causes that each deed is expected to show up as."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_core.history.causes import CauseKind

JOINED = frozenset((CauseKind.MEMBER_JOINED,))
LEFT = frozenset((CauseKind.MEMBER_LEFT_OR_EXPIRED, CauseKind.STATIC_MEMBER_LEFT))
RETURNED = frozenset((CauseKind.STATIC_MEMBER_RETURNED, CauseKind.STATIC_MEMBER_REPLACED))
SUBSCRIPTION = frozenset((CauseKind.SUBSCRIPTION_CHANGED,))
GROWN = frozenset((CauseKind.TOPIC_GROWN,))
DELETED = frozenset((CauseKind.TOPIC_DELETED,))
CONNECTORS = frozenset((CauseKind.CONNECTORS_CHANGED,))
CONFIG = frozenset((CauseKind.GROUP_CONFIG_CHANGED,))

LEAVES = frozenset(
    ("leave", "crash", "share-leave", "share-crash", "streams-close", "streams-crash", "worker-stop", "worker-kill")
)
STATIC_LEAVES = ("static-removed-by-admin", "static-stop-until-expiry")
UNNAMED = {"e-in1": "E-stateless", "d-1": "D-share-38", "d-2": "D-share-38"}
"""Topics of groups of which the script does not name any."""


class Deed(NamedTuple):
    """One thing that a script did, to be found as one of ``kinds`` in ``group``.

    It is about the member of a ``client`` (what its client id begins with) or of a static ``instance``, or about a
    ``topic``, or about the whole group. ``topics`` is what the client asks for from now on.
    """

    ts: int
    event: str
    group: str
    kinds: frozenset[str]
    client: str | None = None
    instance: str | None = None
    topic: str | None = None
    topics: tuple[str, ...] = ()


@dataclass(slots=True)
class Script:
    """What is known of the clients so far: group and topics by client or instance; topics of a group's past clients."""

    group_of: dict[str, str] = field(default_factory=dict)
    topics_of: dict[str, frozenset[str]] = field(default_factory=dict)
    topics_of_group: dict[str, frozenset[str]] = field(default_factory=dict)

    def come(self, who: str, group: str, topics: frozenset[str]) -> None:
        self.group_of[who] = group
        self.topics_of[who] = topics or self.topics_of_group.get(group, frozenset())
        self.topics_of_group[group] = self.topics_of_group.get(group, frozenset()) | topics

    def go(self, who: str) -> bool:
        return self.group_of.pop(who, None) is not None

    def members(self, group: str) -> list[str]:
        return [who for who, its in self.group_of.items() if its == group]

    def subscribed(self, topic: str) -> list[str]:
        groups = {group for who, group in self.group_of.items() if topic in self.topics_of[who]}
        return sorted(groups | ({UNNAMED[topic]} if topic in UNNAMED else set()))


def deeds(corpus: Path) -> Iterator[Deed]:
    """The deeds of a MANIFEST.json that can make a group rebalance, in order of time."""
    script = Script()
    for event in events(corpus):
        yield from _clients(event, script)
        yield from _others(event, script)


def events(corpus: Path) -> list[dict[str, Any]]:
    """All events of a MANIFEST.json."""
    listed: list[dict[str, Any]] = json.loads((corpus / "MANIFEST.json").read_text())["events"]
    return listed


def _topics(event: dict[str, Any]) -> frozenset[str]:
    return frozenset(event.get("topics", "[]").strip("[]").replace(" ", "").split(",")) - {""}


def _clients(event: dict[str, Any], script: Script) -> Iterator[Deed]:
    """Clients that come, go and change what they ask for."""
    ts, name, group, who = event["ts"], event["event"], event.get("group", ""), _who(event)
    if name == "join-regex" and who is None:
        for number in range(1, event["members"] + 1):
            script.come(f"{group}-{number}", group, frozenset())
            yield Deed(ts, name, group, JOINED, f"{group}-{number}")
    elif name in ("join", "join-regex", "share-join", "streams-start", "worker-start") and who:
        script.come(who, group, _topics(event))
        yield Deed(ts, name, group, JOINED, who)
    elif name == "static-join":
        script.come(f"{group}/{event['instance']}", group, _topics(event))
        yield Deed(ts, name, group, JOINED, instance=event["instance"])
    elif name == "static-bounce-start":
        yield Deed(ts, name, group, RETURNED, instance=event["instance"])
    elif (name in LEAVES or name == "streams-exception") and who and script.go(who):
        yield Deed(ts, name, group, LEFT, who)
    elif name in STATIC_LEAVES and script.go(f"{group}/{event['instance']}"):
        yield Deed(ts, name, group, LEFT, instance=event["instance"])
    elif name == "close-all":
        for each in script.members(group):
            script.go(each)
            instance = each.partition("/")[2]
            yield Deed(ts, name, group, LEFT, None if instance else each, instance or None)
    elif name in ("regex-change", "subscription-change"):
        if name == "subscription-change" and script.topics_of.get(who or "") == _topics(event):
            return
        script.come(who or "", group, _topics(event))
        yield Deed(ts, name, group, SUBSCRIPTION, who, topics=tuple(sorted(_topics(event))))
    elif name == "share-subscription-change":
        yield Deed(ts, name, group, SUBSCRIPTION)


def _others(event: dict[str, Any], script: Script) -> Iterator[Deed]:
    """Topics, connectors and configs that change."""
    ts, name, group, topic = event["ts"], event["event"], event.get("group", ""), event.get("topic", "")
    if name in ("topic-partitions", "topic-delete"):
        kinds = GROWN if name == "topic-partitions" else DELETED
        for each in script.subscribed(topic):
            yield Deed(ts, name, each, kinds, topic=topic)
    elif name in ("connector-create", "connector-reconfigure", "connector-delete"):
        yield Deed(ts, name, group, CONNECTORS)
    elif name == "group-config" and script.members(group):
        yield Deed(ts, name, group, CONFIG)


def _who(event: dict[str, Any]) -> str | None:
    """What the script calls a client, which is how its client id begins."""
    if "worker" in event:
        return f"w{event['worker']}"
    who: str | None = event.get("member")
    return who or (None if event.get("instance", "").startswith("inst-") else event.get("instance"))
