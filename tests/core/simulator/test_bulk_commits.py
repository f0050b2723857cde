"""Commits that members make at an interval, put into the log piece by piece."""

from coordinator_core.simulator.bulk_commits import CommitStreams
from coordinator_core.simulator.scenario import Scenario
from coordinator_core.simulator.topic_plan import plan_topics


def test_a_commit_of_the_millisecond_in_which_its_member_stops_stays_in_the_log():
    """A topic's deletion asks for all commits up to its time, and the members that had it stop committing then."""
    scenario = Scenario.model_validate({"topics": {"orders": {"partitions": 1}}})
    commits = CommitStreams(plan_topics(scenario, 1))
    begin = scenario.start_ms
    stream = commits.open("readers", [("orders", None, 0)], 5_000, begin)
    written = list(commits.chunks(begin + 10_001))
    stream.close(begin + 10_000)
    assert list(commits.chunks(begin + 60_000)) == []
    assert sum(chunk.commits for chunk in written) == commits.count == 3
    assert commits.committed()["readers"]["orders", 0][1] == begin + 10_000
