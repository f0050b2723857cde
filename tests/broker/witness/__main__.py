"""Record the script: ``python -m tests.broker.witness FOLDER [RELEASE ...]``, a folder in it for each release."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.broker.kafka import KAFKA
from tests.broker.witness import record

for release in sys.argv[2:] or [KAFKA]:
    with tempfile.TemporaryDirectory() as place:
        done = record(Path(place), Path(sys.argv[1]) / release, release, until_expiry=release == KAFKA)
    print(release, len(done), "departures", flush=True)
