"""What is said of each departure of a recording, held against what was done: right, wrong or unknown."""

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from coordinator_core.durations import duration
from coordinator_core.history.causes import DEPARTED
from jobs.queries.from_logs.brokers import BrokerLogs
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import find_logs


class Judged(NamedTuple):
    """A departure: group, client, what was done, what is said of it, and whether that is right, wrong or unknown."""

    group: str
    client: str
    how: str
    said: str
    verdict: str


def judged(recording: Path, *, with_broker_log: bool = True) -> list[Judged]:
    """Judge what the logs of a recording say of each departure."""
    logs = find_logs([recording], snapshots=True)
    paths = sorted(recording.glob("server*.log")) if with_broker_log else []
    lines = BrokerLogs(paths).read(logs, lambda message: None)
    said: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for history in group_histories(logs, lambda message: None, brokers=lines):
        clients = {row.member_id: row.client_id for row in history.memberships}
        for row in history.rebalances:
            for cause in row.causes:
                client = (clients.get(cause.member_id or "") or "").split("-StreamThread")[0]
                if cause.kind in {*DEPARTED, "member_left", "member_expired", "member_timed_out"}:
                    text = f"{cause.kind} {cause.detail or ''}"
                    said.setdefault((history.group_id, client), []).append((str(cause.kind), text))
    found = []
    for group, client, how, words in (each.values() for each in json.loads((recording / "truth.json").read_text())):
        told = said.get((group, client), [])
        if words.endswith(" ms"):
            words = duration(int(words.removesuffix(" ms")))
        kinds = {kind for kind, _ in told}
        if not told or kinds & DEPARTED:
            verdict = "unknown"
        else:
            fits = kinds == {how} and any(words in text or words == "session" for _, text in told)
            verdict = "right" if fits else "wrong"
        found.append(Judged(group, client, how, "; ".join(text for _, text in told), verdict))
    return found


def tally(rows: list[Judged]) -> dict[str, int]:
    """Count the verdicts."""
    counts = Counter(row.verdict for row in rows)
    return {each: counts[each] for each in ("right", "wrong", "unknown")}
