"""Record the script: ``python -m tests.broker.witness FOLDER [RELEASE [PART,...]]``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.broker.kafka import KAFKA
from tests.broker.witness import PARTS, record

chosen = frozenset(sys.argv[3].split(",")) if len(sys.argv) > 3 else frozenset(PARTS)
with tempfile.TemporaryDirectory() as place:
    for each in record(Path(place), Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else KAFKA, chosen):
        print(*each)
