"""The questions that are asked of the logs, and what each of them answers."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from typer.testing import CliRunner

from jobs.cli.app import app

Row = dict[str, Any]
Key = tuple[Any, ...]


class Answer(NamedTuple):
    """What a command printed: the rows, what it warned of, or its error, and its exit code."""

    rows: list[Row]
    said: str
    code: int


def asked(arguments: Sequence[str], source: Sequence[str]) -> Answer:
    """Run a command in this process."""
    result = CliRunner().invoke(app, [*arguments, *source, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return Answer([], f"{type(result.exception).__name__}: {result.exception}", 99)
    rows = []
    for line in result.stdout.splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            rows.append({"line": line})
    return Answer(rows, result.stderr, result.exit_code)


@dataclass(frozen=True)
class Question:
    """A command. ``key`` identifies a row, ``group`` names its group, ``is_certain`` tells what it claims.

    ``ignored`` are fields that may differ, and ``proofs`` those that may where another one is null: the position of a
    record that proves the row is another one where the first is lost. ``rests_on`` may differ where records are missing
    and the answer says so, ``rests_on_metadata`` where they are those of the metadata log. ``counts``: rows count what
    was seen; a warning says that there may be more.
    """

    arguments: tuple[str, ...]
    key: Callable[[Row], Key]
    is_certain: Callable[[Row], bool]
    group: Callable[[Row], str | None]
    ignored: frozenset[str] = frozenset()
    proofs: tuple[tuple[str, str], ...] = ()
    rests_on: frozenset[str] = frozenset()
    rests_on_metadata: frozenset[str] = frozenset()
    is_gate: bool = False
    counts: bool = False


def _at(name: str) -> Callable[[Row], Key]:
    """Return what gives the key of a row by a record and, of a rebalance, its epoch: several may have one time.

    Connect groups on KIP-848 have a log of their own.
    """

    def key(row: Row) -> Key:
        at = row[name]
        return (row["group_id"], _is_of_connect(row), at["partition"], at["offset"], row.get("to_epoch"))

    return key


def _is_of_connect(row: Row) -> bool:
    return row.get("group_type") == "CONNECT"


def _of(*names: str) -> Callable[[Row], Key]:
    return lambda row: tuple(str(row.get(name)) for name in names)


def _complete(row: Row) -> bool:
    return bool(row.get("history_complete", True))


def _of_offset(row: Row) -> Key:
    """Return the key of an offset; a partition may have one in each open transaction."""
    return (*_of("topic", "partition", "status")(row), row["producerId"] if row.get("status") == "pending" else None)


def _history_key(row: Row) -> Key:
    table = row["table"]
    row = row | {"topic": row.get("topic_id") or row.get("topic")}
    at = next((row[name] for name in ("opened", "joined", "since", "at") if isinstance(row.get(name), dict)), {})
    names = ("member_id", "kind", "role", "resource", "partition", "topic", "rule", "phase", "to_epoch")
    more = tuple(str(row.get(name)) for name in names)
    return (table, _is_of_connect(row), at.get("partition"), at.get("offset"), *more)


def _history_certain(row: Row) -> bool:
    return _complete(row) and row.get("missing") is None


NO_DIFFERENCE: Final = frozenset(
    (
        "listComplete",
        "list_complete",
        "certainty",
        "unknownFields",
        "unknownMembers",
        "unknownOffsets",
        "incompleteLists",
    )
)


OF_VERDICT: Final = frozenset(("fitted", "basis", "expected", "recorded", "topics_at"))
"""What a verdict rests on: where a record before it is missing, the same verdict may rest on something else."""


OF_HISTORY: Final = frozenset(("topics_at",))
"""Behind a hole of the metadata log another version of the topics may have the hash that an epoch names."""


def questions(groups: Sequence[str], topic: str, moments: Sequence[str]) -> dict[str, Question]:
    """The questions about all groups, and about each of these; ``moments`` are ends of partitions."""
    group = lambda row: row.get("group") or row.get("group_id")  # noqa: E731
    then = [part for each in moments for part in ("--at-offset", each)]
    certain = lambda row: row["certainty"] == "certain"  # noqa: E731
    of_finding = _of("group_id", "kind", "subject", "since_ms")
    found = {
        "groups": Question(("groups",), _of("group"), certain, group, NO_DIFFERENCE),
        "groups then": Question(("groups", *then), _of("group"), certain, group, NO_DIFFERENCE),
        "describe": Question(("describe", "--all"), _of("group"), certain, group, NO_DIFFERENCE),
        "describe then": Question(("describe", "--all", *then), _of("group"), certain, group, NO_DIFFERENCE),
        "rebalances": Question(("rebalances",), _at("at"), _history_certain, group),
        "owners": Question(
            ("owners", topic),
            _of("group_id", "partition", "member_id", "role"),
            lambda row: row.get("member_id") is not None and row.get("role") != "unknown",
            group,
            NO_DIFFERENCE,
            proofs=(("log", "since"),),
        ),
        "owners over time": Question(
            ("owners", topic, "--history"), _of("group_id", "partition", "member_id", "role", "log"), _complete, group
        ),
        "findings": Question(("findings",), of_finding, _complete, group),
        "findings gate": Question(
            ("findings", "--fail-on", "any"),
            _of("group_id", "kind", "subject", "since_ms"),
            _complete,
            group,
            is_gate=True,
        ),
        "rare findings gate": Question(
            ("findings", "--fail-on", "assignor_failed"),
            _of("group_id", "kind", "subject", "since_ms"),
            _complete,
            group,
            is_gate=True,
        ),
        "audit": Question(
            ("audit",),
            lambda row: (row["table"], row.get("rule"), row.get("epoch"), *_at("at")(row)),
            lambda row: row.get("verdict") not in ("unknown", "equivalent"),
            group,
            rests_on=OF_VERDICT,
        ),
        "audit gate": Question(
            ("audit", "--fail-on", "violation,divergent,invalid"),
            lambda row: (row["table"], row.get("rule"), row.get("epoch"), *_at("at")(row)),
            lambda row: row.get("verdict") not in ("unknown", "equivalent"),
            group,
            rests_on=OF_VERDICT,
            is_gate=True,
        ),
        "metrics": Question(("metrics",), _metric, lambda row: True, _of_metric, counts=True),
    }
    for name in groups:
        mine: Callable[[Row], str | None] = lambda row, name=name: name  # type: ignore[misc]  # noqa: E731
        found |= {
            f"history {name}": Question(
                ("history", name), _history_key, _history_certain, mine, rests_on_metadata=OF_HISTORY
            ),
            f"offsets {name}": Question(
                ("offsets", name),
                _of_offset,
                lambda row: row.get("status") not in ("unknown", "undecided"),
                mine,
                NO_DIFFERENCE,
            ),
            f"commits {name}": Question(
                ("commits", name),
                lambda row: (row["topic"], row["partition"], row["kind"], row["since"]["offset"]),
                lambda row: row.get("missing") is None,
                mine,
            ),
            f"explain {name}": Question(("explain", name), _of("text"), lambda row: True, mine, counts=True),
            f"whatif {name}": Question(
                ("whatif", name, "--static", "45000"), _of("history"), lambda row: True, mine, counts=True
            ),
        }
    return found


def _metric(row: Row) -> Key:
    return (row["line"].rpartition(" ")[0],)


def _of_metric(row: Row) -> str | None:
    found = re.search(r'group(?:_id)?="((?:[^"\\]|\\.)*)"', row["line"])
    return None if found is None else re.sub(r"\\(.)", lambda each: "\n" if each[1] == "n" else each[1], found[1])
