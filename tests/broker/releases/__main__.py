"""Command ``python -m tests.broker.releases [RELEASE...]``: write the recordings of the quick tests."""

import gzip
import json
import sys
import tempfile
from pathlib import Path

from tests.broker.releases import ASSIGNORS, RELEASES, WITHOUT, groups, results

RECORDED = 24
"""How many groups for each assignor are recorded."""

FOLDER = Path(__file__).resolve().parents[2] / "data" / "releases"

FOLDER.mkdir(exist_ok=True)
for release in sys.argv[1:] or RELEASES:
    names = [name for name in ASSIGNORS if name not in WITHOUT.get(release, ())]
    given = [group for name in names for group in groups(name, RECORDED)]
    with tempfile.TemporaryDirectory() as home:
        found = results(release, given, Path(home))
    lines = [json.dumps({"group": group, "result": result}) for group, result in zip(given, found, strict=True)]
    (FOLDER / f"{release}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    print(f"{release}: {len(lines)} groups")
