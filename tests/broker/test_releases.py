"""300 groups for each release that Maven has and each assignor, given to that release's own classes."""

from pathlib import Path

import pytest

from coordinator_core.assignors.profiles import OTHER_BEFORE, profile
from tests.broker.releases import ASSIGNORS, RELEASES, groups, results
from tests.core.assignors.test_releases import ours_or_none


@pytest.mark.parametrize("release", RELEASES)
def test_each_release_gives_what_its_profile_gives(release: str, tmp_path: Path) -> None:
    is_reproduced = profile(RELEASES[release]).release >= OTHER_BEFORE
    compared = [name for name in ASSIGNORS if name in ("uniform", "range") or is_reproduced]
    given = [group for name in compared for group in groups(name, 300)]
    found = results(release, given, tmp_path)
    unequal = [
        group
        for group, result in zip(given, found, strict=True)
        if result.get("members") != ours_or_none(group, RELEASES[release])
    ]
    assert not unequal
