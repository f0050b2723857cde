"""Command ``python -m tests.broker.upgrade [FILE]``: record the log of all releases, for the quick tests."""

import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.broker.upgrade import Upgrade

RECORDED = Path(__file__).parents[2] / "data" / "upgrade.tar.xz"
LOGS = ("__consumer_offsets-*", "__cluster_metadata-*", "__share_group_state-*")


def write(recorded: Upgrade, to: Path) -> None:
    """Write the segments that matter, and what the clients held, into one archive."""
    with tarfile.open(to, "w:xz") as archive:
        for pattern in LOGS:
            for segment in sorted((recorded.home / "data").glob(f"{pattern}/*.log")):
                archive.add(segment, f"logs/{segment.parent.name}/{segment.name}")
        lines = "".join(json.dumps(each) + "\n" for each in recorded.seen).encode()
        entry = tarfile.TarInfo("seen.jsonl")
        entry.size = len(lines)
        archive.addfile(entry, io.BytesIO(lines))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        upgrade = Upgrade(Path(folder))
        upgrade.run()
        write(upgrade, Path(sys.argv[1]) if sys.argv[1:] else RECORDED)
