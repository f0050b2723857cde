"""One public class name stands for one thing: no two modules of the project define the same one."""

import ast
from collections import defaultdict

from tests.shared_data import ROOT

# Generated record types are named after the records of Kafka's schemas, several of which share a name across logs.
GENERATED = ROOT / "coordinator_core" / "record_fields"


def test_no_public_class_name_is_used_twice() -> None:
    modules: dict[str, list[str]] = defaultdict(list)
    for top in ("coordinator_audit", "coordinator_core", "jobs", "benchmarks"):
        for path in (ROOT / top).rglob("*.py"):
            if path.is_relative_to(GENERATED):
                continue
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    modules[node.name].append(str(path.relative_to(ROOT)))
    assert len(modules) > 300
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}
