"""The clients of classic groups of consumers, and what the assignors of each do: one family, and data for each.

Source: each client's own code in words, proven by recorded groups; Kafka's releases by their classes. An assignor that
is not here cannot be recomputed: those of sarama and franz-go walk Go maps, whose order is random, and applications
bring their own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from coordinator_core.assignors.client.claimed_partitions import (
    Reader,
    cooperative_data,
    cooperative_user_data,
    first_in_python,
    newest_key_first,
    of_each_generation,
    of_latest_generation,
    of_present_generation,
    owned_data,
    owned_or_sticky_data,
    owned_without_generation,
    sticky_data,
    sticky_data_of_generation,
    versioned_sticky_data,
)
from coordinator_core.assignors.client.constrained import BeforeNumbers, StealingAssignment
from coordinator_core.assignors.client.general import GeneralRules, TreatmentOrder, by_hash, by_number, newest_first
from coordinator_core.assignors.client.quotas import Quotas
from coordinator_core.assignors.client.range_and_roundrobin import (
    RangeProfile,
    RoundRobin,
    as_joined,
    as_known,
    by_hash_of_topic,
    by_id,
    by_text,
    last_runs,
    of_leader,
    rounded,
    rounded_down,
    two_static_by_instance,
)
from coordinator_core.assignors.client.sticky import Sticky, owned_stays, unplanned_returns, without_transfers
from coordinator_core.assignors.inputs import Assignment, ClassicGroupSpec
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import InputError

ClientAssignor = Callable[[ClassicGroupSpec, TopicImage], Assignment[Any]]
Assignors = Mapping[str, ClientAssignor]

JAVA: Final = "java"
"""Kafka's own consumer, in its release of today."""
RELEASES: Final[Mapping[str, str]] = {
    JAVA: "3.7 and later",
    "java-3.5": "3.5 and 3.6",
    "java-3.0": "3.0 to 3.4",
    "java-2.8": "2.8.1 and 2.8.2",
    "java-2.6": "2.6 to 2.8.0",
    "java-2.4": "2.4 and 2.5",
    "sarama": "1.34.1 and later",
    "sarama-1.28": "1.28 to 1.34.0",
    "sarama-1.19": "1.19 to 1.27",
    "platformatic": "before 2.12",
    "platformatic-2.12": "2.12 and later",
    "kafkajs": "1.13 and later",
    "kafkajs-1.0": "before 1.13",
    "kafka-python": "3.0 and later",
    "kafka-python-2.3": "2.3",
    "kafka-python-1.0": "before 2.3",
}
"""The releases of a client that each of these stands for; other clients assign alike in all that are known."""
JAVA_CLIENTS = tuple(name for name in RELEASES if name.startswith(JAVA))
KNOWS_TOPICS_IN_ORDER = frozenset((("librdkafka", "cooperative-sticky"), ("platformatic-2.12", "roundrobin")))
"""Clients and their assignors that depend on an order in which the leader knows the topics, and no record has it."""
KNOWS_OTHER_TOPICS = frozenset(("kafka-python", "kafka-python-2.3", "kafka-python-1.0", "aiokafka"))
"""Clients whose sticky assignors heed topics that their leader knows, as by a pattern, and nobody subscribes to."""
DEALS_AS_LISTED = frozenset(("kafkajs", "kafkajs-1.0", "kafka-go"))
"""Clients that give partitions out in the order in which a broker's metadata lists them. Brokers may list them in the
order of a hash map: those of 2.8, 3.9 and 4.0 do, those of 4.3 do not.
"""
JOINS_WITHOUT_TOPICS = frozenset(("kafka-python",))
"""Clients that may join, and lead, before they have asked for the topics of their own subscription: they assign nothing
of these, and join again.
"""
BALANCES_RACKS = frozenset(("franz-go",))
"""Clients with an option to prefer partitions whose leader is in a member's rack, before stickiness (BalanceRacks)."""
SORTED = TreatmentOrder(by_number, from_end=True, all_known=True)
BEFORE_RACKS = GeneralRules(by_one=True)
BY_HASH = GeneralRules(TreatmentOrder(by_hash, former_by_hash=True), by_one=True)
IN_LIBRDKAFKA = GeneralRules(TreatmentOrder(newest_first, sorted=True), moves_by_hash=False, fails=False, by_one=True)
IN_KAFKA_PYTHON = GeneralRules(SORTED, moves_by_hash=False, substitutes=True, fails=False, by_one=True)
IN_AIOKAFKA = GeneralRules(SORTED, moves_by_hash=False, fails=False, by_one=True)
IN_3_7, IN_3_5 = Sticky(sticky_data), Sticky(sticky_data, equal=BeforeNumbers)
IN_3_0 = Sticky(sticky_data, of_latest_generation, BeforeNumbers, BEFORE_RACKS, by_racks=False)
IN_2_8 = Sticky(sticky_data, of_present_generation, StealingAssignment, BEFORE_RACKS, by_racks=False, reads_once=True)
IN_2_6 = replace(IN_2_8, claims=partial(of_present_generation, both_keep=True))
IN_2_4 = Sticky(sticky_data, of_each_generation, None, BY_HASH, by_racks=False)
RDKAFKA = Sticky(owned_data, newest_key_first, None, IN_LIBRDKAFKA, unplanned_returns, empty_rack=True)
IN_PYTHON = Sticky(sticky_data_of_generation, first_in_python, None, IN_KAFKA_PYTHON, by_racks=False)
OLD_SARAMA = RangeProfile(of_topic=by_hash_of_topic, bound=rounded)
PLAIN: Assignors = {"range": RangeProfile(), "roundrobin": RoundRobin()}
BY_RACKS: Assignors = {**PLAIN, "range": RangeProfile(by_racks=True)}
BY_ID: Assignors = {"range": RangeProfile(by_id), "roundrobin": RoundRobin(by_id)}
LAST_RUNS: Assignors = {"range": RangeProfile(last_runs), "roundrobin": RoundRobin(last_runs, fails_on_skip=True)}

_cooperative = partial(replace, hand_over=without_transfers)

CLIENTS: Mapping[str, Assignors] = {
    JAVA: {**BY_RACKS, "sticky": IN_3_7, "cooperative-sticky": _cooperative(IN_3_7, read=cooperative_data)},
    "java-3.5": {**BY_RACKS, "sticky": IN_3_5, "cooperative-sticky": _cooperative(IN_3_5, read=cooperative_data)},
    "java-3.0": {**PLAIN, "sticky": IN_3_0, "cooperative-sticky": _cooperative(IN_3_0, read=cooperative_user_data)},
    "java-2.8": {**PLAIN, "sticky": IN_2_8, "cooperative-sticky": _cooperative(IN_2_8, read=cooperative_user_data)},
    "java-2.6": {**PLAIN, "sticky": IN_2_6, "cooperative-sticky": _cooperative(IN_2_6, read=owned_without_generation)},
    "java-2.4": {**PLAIN, "sticky": IN_2_4, "cooperative-sticky": _cooperative(IN_2_4, read=owned_without_generation)},
    "librdkafka": {
        "range": RangeProfile(two_static_by_instance, by_racks=True, together_by_racks=True),
        "roundrobin": RoundRobin(two_static_by_instance),
        "cooperative-sticky": RDKAFKA,
    },
    "franz-go": PLAIN,
    "sarama": {"range": RangeProfile(by_id), "roundrobin": RoundRobin(by_id, by_text)},
    "sarama-1.28": {"range": OLD_SARAMA, "roundrobin": RoundRobin(by_id, by_text)},
    "sarama-1.19": {"range": OLD_SARAMA, "roundrobin": RoundRobin(restarts=True, of_topic=by_hash_of_topic)},
    "kafka-go": {
        "range": RangeProfile(by_id, bound=rounded_down),
        "roundrobin": RoundRobin(by_id, restarts=True),
        "rack-affinity": RangeProfile(as_joined),
    },
    "kafkajs": {"RoundRobinAssigner": RoundRobin(by_id, of_leader, to_anyone=True)},
    "kafkajs-1.0": {"RoundRobinAssigner": RoundRobin(by_id, of_leader, restarts=True, to_anyone=True)},
    "platformatic": {"roundrobin": RoundRobin(as_joined, of_leader, to_anyone=True)},
    "platformatic-2.12": {
        "roundrobin": RoundRobin(as_joined, as_known, to_anyone=True),
        "cooperative-sticky": Quotas(cooperative_data),
    },
    "aiokafka": {**BY_ID, "sticky": replace(IN_PYTHON, general=IN_AIOKAFKA)},
    "kafka-python": {
        **LAST_RUNS,
        "sticky": replace(IN_PYTHON, read=versioned_sticky_data),
        "cooperative-sticky": replace(IN_PYTHON, read=owned_data, hand_over=owned_stays),
    },
    "kafka-python-2.3": {**LAST_RUNS, "sticky": IN_PYTHON},
    "kafka-python-1.0": {**BY_ID, "sticky": IN_PYTHON},
}
"""By client, its assignors that can be recomputed, by the names that a group's records carry."""

READERS: Mapping[tuple[str, str], Reader] = {
    ("franz-go", "sticky"): sticky_data,
    ("franz-go", "cooperative-sticky"): owned_or_sticky_data,
    ("sarama", "sticky"): sticky_data,
    ("sarama", "cooperative-sticky"): cooperative_data,
    ("platformatic-2.12", "cooperative-sticky"): cooperative_data,
    **{
        (client, name): assignor.read
        for client, assignors in CLIENTS.items()
        for name, assignor in assignors.items()
        if isinstance(assignor, Sticky)
    },
}
"""By client and name of a sticky assignor: how it reads what members own."""


def client_assignor(client: str, name: str) -> ClientAssignor:
    """Return the assignor of that name as a client has it; raises InputError if it has none that can be recomputed."""
    assignors = CLIENTS.get(client)
    if assignors is None:
        raise InputError(f"no client {client!r}; there are {', '.join(CLIENTS)}")
    try:
        return assignors[name]
    except KeyError:
        raise InputError(f"no assignor {name!r} of {client}; there are {', '.join(assignors)}") from None


def remembered(client: str, name: str, spec: ClassicGroupSpec) -> int | None:
    """Return what the assignor keeps after a round of this group, even if the round itself fails; None: nothing."""
    assignor = client_assignor(client, name)
    return assignor.remembered(spec) if isinstance(assignor, Sticky) else None


def readers(clients: Sequence[str], name: str) -> list[Reader]:
    """Return how these clients read what members of a group with that assignor own, each way once."""
    return list(dict.fromkeys(READERS[client, name] for client in clients if (client, name) in READERS))


def document_rows() -> list[dict[str, str]]:
    """Return the table as text for the docs: a dict for each client, by the heads of its columns."""
    return [
        {
            "Client": f"`{client}`" + (f", {RELEASES[client]}" if client in RELEASES else ""),
            "Computed": ", ".join(assignors),
            "Checked only": ", ".join(name for of, name in READERS if of == client and name not in assignors) or "-",
        }
        for client, assignors in CLIENTS.items()
    ]
