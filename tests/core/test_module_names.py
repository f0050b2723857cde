"""A module's name says what it is: the same name stands for at most two modules, each in another room. None is long."""

from collections import defaultdict
from pathlib import Path

from tests.shared_data import ROOT

TYPES = {"classic", "connect", "consumer", "share", "streams"}
"""Each type of group has a folder in several rooms, and in these folders the same modules."""
READERS = {"from_logs", "from_tables"}
"""Both readers answer the same questions."""
NAMED_BY_OTHERS = ("coordinator_core/record_fields", "jobs/cli")
"""Named for record types and for commands."""
MORE_OFTEN = {
    "brokers.py": "simulated ones, and what their logs add to answers",
    "commits.py": "the columns of their table, its relation, the fold of them and the questions about them",
    "offsets.py": "of a group, in its table, and each night",
    "records.py": "of the log, of each type of group, and their tables",
    "replay.py": "of a group, each night, its relation, and under another assignor",
    "settings.py": "of the project, of an audit, and of a cluster in the tables",
    "share_state.py": "rules, simulation and relation of the share state log",
}
"""Names of more than two modules, and what these are."""


def room_of(module: Path) -> str:
    """The folder of a module, without the type of group and the reader that it is for."""
    parts = ["<type>" if part in TYPES else "<reader>" if part in READERS else part for part in module.parts[:-1]]
    return "/".join(parts)


def test_a_module_name_is_used_at_most_twice() -> None:
    rooms: dict[str, set[str]] = defaultdict(set)
    for top in ("coordinator_core", "jobs"):
        for path in (ROOT / top).rglob("*.py"):
            module = path.relative_to(ROOT)
            if module.name == "__init__.py" or module.stem in TYPES or str(module.parent).startswith(NAMED_BY_OTHERS):
                continue
            rooms[module.name].add(room_of(module))
    assert len(rooms) > 300
    assert {name for name, places in rooms.items() if len(places) > 2} == set(MORE_OFTEN)


def test_no_module_is_longer_than_500_lines() -> None:
    """But for those that are made from schemas."""
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for top in ("coordinator_audit", "coordinator_core", "jobs")
        for path in (ROOT / top).rglob("*.py")
        if path.parent != ROOT / "coordinator_core" / "record_fields"
    }
    assert len(lengths) > 500
    assert {path: length for path, length in lengths.items() if length > 500} == {}
