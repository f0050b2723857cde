"""Brokers of all releases write one log in turn: nothing in it is called wrong, and members hold what it says."""

import json
import shutil
from pathlib import Path

import pytest

from tests.broker.upgrade import Upgrade
from tests.broker.upgrade.__main__ import LOGS
from tests.broker.upgrade.expectations import (
    PROFILES,
    differing_holders,
    is_undecidable,
    profiles_by_release,
    streams_releases,
    verdicts,
)


@pytest.mark.long
def test_a_log_of_all_releases(tmp_path: Path) -> None:
    upgrade = Upgrade(tmp_path)
    upgrade.run()
    logs = tmp_path / "logs"
    for pattern in LOGS:
        for folder in (tmp_path / "data").glob(pattern):
            shutil.copytree(folder, logs / folder.name)
    rows = verdicts(logs)
    assert {each["verdict"] for each in rows} <= {"identical", "unknown"}
    assert all(is_undecidable(each) for each in rows if each["verdict"] == "unknown")
    assert streams_releases(rows, upgrade.seen) == {"4.1.2", "4.2.1", "4.3.1", "4.4.0"}
    found = profiles_by_release(rows, upgrade.seen)
    assert found.keys() == PROFILES.keys()
    assert all(PROFILES[release] in names for release, names in found.items()), found
    assert list(differing_holders(logs, upgrade.seen)) == [], json.dumps(upgrade.seen)
