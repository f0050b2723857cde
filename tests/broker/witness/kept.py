"""Recordings that the quick tests have: ``python -m tests.broker.witness.kept FOLDER`` replaces them by its own."""

import sys
import tarfile
from pathlib import Path
from typing import Final

from tests.shared_data import ROOT

KEPT: Final = ROOT / "tests" / "data" / "broker_log" / "witness.tar.xz"
LOGS: Final = ("__consumer_offsets", "__share_group_state", "__cluster_metadata")
PARTS: Final = ("*.log", "truth.json", *(f"{topic}-*/*.log" for topic in LOGS))


def pack(folder: Path) -> None:
    """Write the recordings below a folder, which are those with a ``truth.json``, into the archive."""
    with tarfile.open(KEPT, "w:xz") as archive:
        for truth in sorted(folder.rglob("truth.json")):
            recording = truth.parent
            files = sorted(file for part in PARTS for file in recording.glob(part))
            for file in files:
                archive.add(file, file.relative_to(folder).as_posix())


def unpack(folder: Path) -> list[Path]:
    """Write the recordings to a folder; return the folder of each."""
    with tarfile.open(KEPT) as archive:
        archive.extractall(folder, filter="data")
    return sorted(truth.parent for truth in folder.rglob("truth.json"))


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
