"""From the brokers' own segment files, up to a checkpoint's end offsets, to what Admin said: the way of the CLI."""

from collections import Counter
from dataclasses import replace

import pytest

from coordinator_core.groups.describe import describe
from jobs.queries.from_logs.answers import replay
from jobs.relations.moment import AsOf
from jobs.sources.files import find_logs
from tests.differential.checkpoints import Tally, compare_groups
from tests.differential.decoded import data_end, read_lines
from tests.differential.test_checkpoints import reason, rebalancing_groups
from tests.shared_data import CORPUS


# Each checkpoint replays the log from its beginning; every so many of them is enough here.
@pytest.mark.parametrize(("corpus", "every"), [("scenarios", 8), ("upgrade", 2), ("misc", 4)])
def test_describe_at_end_offsets(corpus: str, every: int) -> None:
    logs = find_logs([CORPUS / corpus / "logs"])
    stable = [each for each in read_lines(CORPUS / corpus / "checkpoints.jsonl.gz") if each["stable"]]
    tally, warnings = Tally(), []
    for checkpoint in stable[::-every]:
        moment = AsOf(offsets={int(partition): end for partition, end in checkpoint["co_end"].items()})
        replayed = replay(logs, moment, warnings.append)
        around = replace(replayed.surroundings(), data_end=data_end(checkpoint), default_assignor="uniform")
        described = {group.group_id: describe(group, held, around) for group, held, _ in replayed.groups()}
        compare_groups(checkpoint, described, tally)
    rebalancing = rebalancing_groups(tally)
    print(f"\n{corpus}: {tally.equal} of {tally.compared} equal")
    assert warnings == []
    assert Counter(reason(each, rebalancing) for each in tally.differences)[None] == 0
