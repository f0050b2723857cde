"""Scenarios that a seed makes: group types, conversions, static members, regexes, topics that come and go, outages,
transactions, workers in two logs. The same seed is the same log.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import yaml
from typer.testing import CliRunner

from jobs.cli.app import app

Fields = dict[str, Any]

ASSIGNORS: Mapping[str, tuple[str, ...]] = {
    "classic": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "consumer": ("uniform", "range"),
}
MIGRATIONS: Mapping[str, str] = {
    "classic": "consumer",
    "consumer": "classic",
    "connect": "connect-kip-848",
    "connect-kip-848": "connect",
    "classic-streams": "streams",
}
WORKERS = ("connect", "connect-kip-848")


def scenario(seed: int) -> Fields:
    """Return the scenario of a seed, as its file has it."""
    random = Random(seed)
    minutes = random.randint(6, 14)
    brokers = random.randint(1, 3)
    profile = random.choice(("kafka-4.3.1", "kafka-4.3.1", "kip-1071"))
    cluster: Fields = {"brokers": brokers, "partitions": random.randint(2, 4), "profile": profile}
    if brokers > 1 and random.random() < 0.5:
        cluster["racks"] = [f"r{number}" for number in range(brokers)]
    if brokers > 1 and random.random() < 0.6:
        cluster["outages"] = [
            {"at": _within(random, minutes), "broker": random.randrange(brokers), "lasts": f"{random.randint(5, 90)}s"}
        ]
    topics = {f"t{number}": _topic(random, minutes, brokers) for number in range(random.randint(2, 4))}
    groups = {f"g{number}": _group(random, minutes, list(topics), profile) for number in range(random.randint(4, 7))}
    return {"lasts": f"{minutes}m", "cluster": cluster, "topics": topics, "groups": groups}


def simulated(seed: int, folder: Path) -> Path:
    """Write the logs of a seed below a folder. Return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"scenario-{seed}.yaml"
    file.write_text(yaml.safe_dump(scenario(seed), sort_keys=False))
    made = CliRunner().invoke(app, ["simulate", str(file), "--seed", str(seed), "--out", str(folder / "made")])
    assert made.exit_code == 0, (seed, made.output, made.exception)
    return folder / "made"


def _within(random: Random, minutes: int) -> str:
    return f"{random.randint(60, minutes * 60 - 30)}s"


def _topic(random: Random, minutes: int, brokers: int) -> Fields:
    partitions = random.randint(1, 8)
    topic: Fields = {"partitions": partitions, "replicas": random.randint(1, brokers), "rate": random.randint(1, 30)}
    fate = random.random()
    if fate < 0.25:
        topic["grows"] = {_within(random, minutes): partitions + random.randint(1, 4)}
    elif fate < 0.4:
        topic["created"] = f"{random.randint(60, minutes * 30)}s"
    elif fate < 0.55:
        topic["deleted"] = _within(random, minutes)
    return topic


def _group(random: Random, minutes: int, topics: list[str], profile: str) -> Fields:
    kinds = ["classic", "classic", "consumer", "consumer", "share", "streams", "connect", "connect-kip-848"]
    kind = random.choice([*kinds, "classic-streams"] if profile == "kip-1071" else kinds)
    group: Fields = {"type": kind, "members": random.randint(1, 4), "starts": f"{random.randint(1, 60)}s"}
    chosen = random.sample(topics, random.randint(1, len(topics)))
    if kind in WORKERS:
        group["connectors"] = {f"c{number}": random.randint(1, 5) for number in range(random.randint(1, 3))}
        group["delay"] = random.choice(("0s", "10s", "60s"))
    elif kind == "consumer" and random.random() < 0.25:
        group["regex"] = random.choice(("t.*", "t[01]", "t0|x.*"))
    else:
        group["topics"] = chosen
    if kind in ASSIGNORS and random.random() < 0.7:
        group["assignor"] = random.choice(ASSIGNORS[kind])
    if kind in ("classic", "consumer"):
        group["static"] = random.random() < 0.3
        if random.random() < 0.3:
            commits = {"lasts": "100ms", "aborts": 0.1, "left_open": random.choice((0, 0.01))}
            group["commits"] = {"every": "3s", "transactions": commits}
    if "streams" in kind and random.random() < 0.5:
        group["streams"] = {"stateful": True, "standbys": random.randint(0, 1)}
    if kind == "share" and random.random() < 0.6:
        group["delivery"] = {"releases": 0.05, "rejects": 0.02, "poison": random.choice((0, 0.01))}
    events = [_event(random, minutes, kind) for _ in range(random.randint(0, 4))]
    if kind in WORKERS and any("migrate" in event for event in events):  # the simulator deletes no such group
        events = [event for event in events if "delete" not in event]
    group["events"] = events
    return group


def _event(random: Random, minutes: int, kind: str) -> Fields:
    actions: dict[str, Callable[[], Any]] = {
        "join": lambda: random.randint(1, 2),
        "leave": lambda: 1,
        "crash": lambda: 1,
        "scale": lambda: random.randint(0, 4),
        "deploy": lambda: {"away": f"{random.randint(1, 20)}s", "step": f"{random.randint(5, 30)}s"},
        "storm": lambda: {"lasts": "30s", "every": "4s"},
        "zombie": lambda: {"lasts": f"{random.randint(10, 120)}s"},
        "delete": lambda: True,
    }
    if kind in MIGRATIONS:
        actions["migrate"] = lambda: MIGRATIONS[kind]
    action = random.choice([*actions])
    return {"at": _within(random, minutes), action: actions[action]()}
