"""One changed input and the command that reads it: of every kind of file, for every command that needs no Spark."""

import random
from pathlib import Path
from typing import Final, NamedTuple

from tests.fuzz.files import KINDS, About, changed_file
from tests.fuzz.mutations import mutate
from tests.fuzz.samples import Logs, chosen_logs
from tests.fuzz.stretches import crowd, stretch

LOG: Final = "log"
BESIDE_LOGS: Final = frozenset({LOG, *KINDS} - {"case", "trace", "scenario", "settings of the command line"})

WHOLE: Final = 0.002
"""The share of inputs that are whole logs with hundreds of records."""

CROWD: Final = 0.3
"""The share of inputs that are crowds: the start of a command takes longer than to judge a hundred records."""

CROWDS_FOR_PROGRAMS: Final = 0.85
"""The share of questions to a crowd whose answer is for a program: a table of all its groups takes a second to draw."""

GROUPS: Final = 80
"""The groups of a crowd."""

TIMES: Final = (
    *("1999-01-01", "2030-01-01T00:00:00Z", "2001-02-30", "now", "", "--5", "\xb2"),
    *("1", "1700000000000", "-1", "9" * 18, "9" * 19, "9" * 5000),
)
OFFSETS: Final = ("0:1", "0:3", "1:0", "\xb2:1", "0:99999999999999999999", "-1:-1", ":", "0")

OF_A_LOG: Final = (
    *(("findings",), ("groups",), ("describe", "--all"), ("audit",), ("rebalances",), ("metrics",), ("dump", "LOGS")),
    *(("metrics", "--names", "burrow"), ("metrics", "--format", "openmetrics"), ("watch",), ("watch", "--explain")),
    *(("owners", name) for name in ("orders", "clicks", "jdbc", "jdbc-0", "t")),
    *(("owners", "orders", "--history"), ("owners", "orders", "0"), ("rebalances", "--slowest", "2")),
    *(("groups", "--type", "classic,streams"), ("groups", "--state", "stable"), ("audit", "--fail-on", "divergent")),
    *(("findings", "--fail-on", "any"), ("rebalances", "--cause", "member joined"), ("dump", "LOGS", "--jsonl")),
)
"""Questions of a whole log."""

OF_A_GROUP: Final = (
    *(("history", "G"), ("describe", "G"), ("offsets", "G"), ("explain", "G"), ("commits", "G"), ("explain", "G@1")),
    *(("rebalances", "--group", "G"), ("audit", "--group", "G"), ("findings", "--group", "G"), ("explain", "0:1")),
    *(("history", "G"), ("describe", "G"), ("commits", "G"), ("explain", "G")),
    ("whatif", "G"),
)
"""Questions of one group."""

CHANGES: Final = (
    *(("--assignor", name) for name in ("uniform", "range", "sticky", "cooperative-sticky", "roundrobin", "simple")),
    *(("--static", "60000"), ("--standbys", "1"), ("--delay", "0"), ("--eager",), ("--warmups", "3")),
    *(("--partitions", "orders=3"), ("--partitions", "orders=\xb2"), ("--delivery-limit", "2"), ("--assignor", "x")),
)
"""What a question of ``whatif`` changes."""

AT_A_MOMENT: Final = frozenset({"groups", "describe", "offsets", "owners"})
LOGS: Final = 0.4
"""The share of inputs that are logs."""

REPORTS: Final = 0.01
"""The share of inputs of logs that become a report, which takes twenty times as long as an answer."""


class Input(NamedTuple):
    """A changed input: its kind, the logs and the other file (name and content; None: none), and one command.

    In the command, ``LOGS``, ``FILE``, ``OUT`` and ``NEW`` (a folder) stand for places. ``done``: what was changed.
    """

    kind: str
    logs: Logs
    file: tuple[str, bytes] | None
    command: tuple[str, ...]
    done: str
    number: int = 1
    """How many inputs it stands for: of a crowd, each changed or added record is one."""


def make_input(simulated: Path, seed: int) -> Input:
    """Return the input of a seed."""
    choose = random.Random(seed)
    if choose.random() < WHOLE:
        logs, done = mutate(chosen_logs(simulated, choose), choose)
        return Input("whole log", logs, None, question("", choose), done)
    if choose.random() < CROWD:
        many = crowd(simulated, choose, GROUPS)
        asked = question("", choose, CROWDS_FOR_PROGRAMS)
        return Input("record of a crowd", many.logs, None, asked, "fields or types", many.changed)
    kind = LOG if choose.random() < LOGS else choose.choice([*KINDS])
    if kind not in BESIDE_LOGS:
        given = changed_file(kind, About({}, "g"), choose)
        return Input(kind, {}, (given.name, given.content), given.command, kind)
    part = stretch(simulated, choose)
    if kind == LOG:
        return Input(LOG, part.logs, None, question(part.group, choose), part.done)
    given = changed_file(kind, About(part.logs, part.group), choose)
    return Input(kind, {} if "LOGS" not in given.command else part.logs, given[:2], given.command, part.done)


def question(group: str, choose: random.Random, for_programs: float = 0.5) -> tuple[str, ...]:
    """Return a question to a log; this share of them is for programs."""
    if choose.random() < REPORTS:
        return "report", "--log", "LOGS", "--out", "OUT"
    known = bool(group) and not group.startswith("-") and "\x00" not in group
    words = choose.choice(OF_A_GROUP if known and choose.random() < 0.6 else OF_A_LOG)
    words += choose.choice(CHANGES) if words[0] == "whatif" else ()
    command = tuple(group if word == "G" else word for word in words)
    if command[0] != "dump":
        command += ("--log", "LOGS")
        command += ("--json",) if choose.random() < for_programs else ()
    if command[0] in AT_A_MOMENT and "--history" not in command and choose.random() < 0.3:
        moment = ("--at", choose.choice(TIMES)) if choose.random() < 0.6 else ("--at-offset", choose.choice(OFFSETS))
        command += moment
    return command


def write_input(given: Input, folder: Path) -> tuple[str, ...]:
    """Write an input below an empty folder, and return its command with the places."""
    for name, data in given.logs.items():
        (folder / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "logs" / name).write_bytes(data)
    places = {"LOGS": str(folder / "logs"), "OUT": str(folder / "page.html"), "NEW": str(folder / "new")}
    if given.file is not None:
        name, content = given.file
        (folder / name).write_bytes(content)
        places["FILE"] = str(folder / name)
    return tuple(places.get(word, word) for word in given.command)
