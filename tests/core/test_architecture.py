"""The page on architecture names files and folders: each of them is there, and each package is on the page."""

from __future__ import annotations

import re

from tests.shared_data import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = [folder for top in ("coordinator_core", "jobs") for folder in (ROOT / top).iterdir() if folder.is_dir()]
PATHS = {
    str(path.relative_to(ROOT))
    for top in ("coordinator_audit", "coordinator_core", "jobs", "schemas", "conf")
    for path in (ROOT / top, *(ROOT / top).rglob("*"))
}


def test_what_the_page_names_is_there() -> None:
    named = [each for each in re.findall(r"`([\w./<>]+)`", PAGE) if "/" in each or each.endswith(".py")]
    assert len(named) > 30
    for each in named:
        path = each.rstrip("/").replace("<type>", "consumer")
        assert any(known == path or known.endswith(f"/{path}") for known in PATHS), each


def test_each_package_is_on_the_page() -> None:
    names = {folder.name for folder in PACKAGES if (folder / "__init__.py").exists()}
    assert {name for name in names if name not in PAGE} == set()
