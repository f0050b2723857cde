"""Record the script: ``python -m tests.broker.witness FOLDER [RELEASE ...]``, a folder in it for each release.

With ``--failover`` before the folder, two brokers are recorded, of which one stops and is killed.
"""

import sys
import tempfile
from pathlib import Path

from tests.broker.kafka import KAFKA
from tests.broker.witness import record
from tests.broker.witness.failover import record_failover
from tests.broker.witness.tally import judged, tally

given = sys.argv[1:]
is_failover = given[0] == "--failover"
folder, *releases = given[is_failover:]
for release in releases or [KAFKA]:
    out = Path(folder) / release
    with tempfile.TemporaryDirectory() as place:
        if is_failover:
            record_failover(Path(place), out, release)
        else:
            record(Path(place), out, release, until_expiry=release == KAFKA)
    rows = judged(out)
    print(release, tally(rows), *(row for row in rows if row.verdict != "right"), sep="\n", flush=True)
