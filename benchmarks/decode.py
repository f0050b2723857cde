"""Decoding of keys and values: columns against the plain decoder, in records a second of one core.

``python -m benchmarks.decode``; the offset commits are synthetic (500 groups, 200 topics), the group records are the
real ones of tests/data, repeated.
"""

import json
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa

from coordinator_core.wire.batch_decode import decode_keys, decode_values
from coordinator_core.wire.primitives import uuid_text
from coordinator_core.wire.record_codec import decode_record, encode_key, encode_value

RUNS = 15
COMMITS = 400_000
BATCH = 32_768
"""Rows a batch: enough to hide the cost of a call, few enough for the cache."""

SAMPLES = Path(__file__).resolve().parent.parent / "tests" / "data" / "records.jsonl"

Pairs = list[tuple[bytes, bytes | None]]


def offset_commits(count: int, seed: int = 1) -> Pairs:
    """Offset commits of version 4 with topic ids."""
    choose = random.Random(seed)
    topics = [(f"orders.region-{at}.v1", uuid_text(choose.randbytes(16))) for at in range(200)]
    pairs: Pairs = []
    for at in range(count):
        topic, topic_id = choose.choice(topics)
        key = {"group": f"billing-service-{choose.randrange(500)}", "topic": topic, "partition": choose.randrange(64)}
        value = {
            "offset": 1_000_000 + at,
            "leaderEpoch": choose.randrange(30),
            "metadata": "" if at % 4 else f"node-{at % 97}",
            "commitTimestamp": 1_790_000_000_000 + at,
            "topicId": topic_id,
        }
        pairs.append((encode_key(1, key), encode_value(1, 4, value)))
    return pairs


def group_records(count: int, seed: int = 1) -> Pairs:
    """Real records of all types of __consumer_offsets, in the mix of the samples, tombstones included."""
    lines = [json.loads(line) for line in SAMPLES.read_text(encoding="utf-8").splitlines()]
    pairs: Pairs = [
        (bytes.fromhex(line["key"]), line["value"] and bytes.fromhex(line["value"]))
        for line in lines
        if line["family"] == "group_coordinator" and int(line["key"][:4], 16) > 1
    ]
    return random.Random(seed).choices(pairs, k=count)


def batches_of(pairs: Pairs) -> list[tuple[pa.Array, pa.Array]]:
    """The pairs as Arrow batches of keys and values."""
    keys, values = (pa.array(column, pa.binary()) for column in zip(*pairs, strict=True))
    return [(keys.slice(at, BATCH), values.slice(at, BATCH)) for at in range(0, len(pairs), BATCH)]


def decode_columns(batches: list[tuple[pa.Array, pa.Array]]) -> None:
    """All batches through the columnar decoder."""
    for keys, values in batches:
        decode_values(values, decode_keys(keys).numbers)


def decode_rows(pairs: Pairs) -> None:
    """All records through the plain decoder."""
    for key, value in pairs:
        decode_record(key, value)


def rate(count: int, work: Callable[[], None], runs: int = RUNS) -> float:
    """Records a second of processor time, the median of several runs."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return count / statistics.median(times)


def main() -> None:
    """Prints one line for each kind of record."""
    print(f"{'records':34} {'columns/s':>12} {'plain/s':>10} {'ratio':>7}")
    for name, pairs in (
        ("offset commits, key and value v4", offset_commits(COMMITS)),
        ("group records, all types", group_records(COMMITS)),
    ):
        batches = batches_of(pairs)
        columns = rate(len(pairs), partial(decode_columns, batches))
        few = pairs[:20_000]
        plain = rate(len(few), partial(decode_rows, few), runs=5)
        print(f"{name:34} {columns:12,.0f} {plain:10,.0f} {columns / plain:6.0f}x")


if __name__ == "__main__":
    main()
