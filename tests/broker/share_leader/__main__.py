"""Write the scripts that a plain clone is tested with."""

import gzip
import json
import tempfile
from pathlib import Path

from tests.broker.share_leader import kafkas_leader
from tests.broker.share_leader.scripts import record_script

RECORDED = Path(__file__).parents[2] / "data" / "share_leader.jsonl.gz"
SCRIPTS, STEPS = 20, 150

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home, kafkas_leader(Path(home)) as do:
        lines = [json.dumps(line) + "\n" for seed in range(SCRIPTS) for line in record_script(seed, STEPS, do)]
    RECORDED.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
