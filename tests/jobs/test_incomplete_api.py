"""No answer of the Python API looks complete where the logs lack something: it warns, as the commands do."""

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator_audit import CoordinatorAudit, IncompleteLogWarning, InputError
from tests.jobs.conftest import SAMPLE_LOGS
from tests.matrix.sources import CLUSTER, StoredTables, ThisProcess

GROUP = "B-range-5175"
LATER = "2027-01-01T00:00:00Z"
ABSENT = "1 of 4 partitions of __consumer_offsets were not given (1)"
TABLES = ("group_epochs", "rebalances", "memberships", "assignments", "target_audits", "violations", "findings")
ASKS: dict[str, Callable[[CoordinatorAudit], object]] = {
    **{name: lambda audit, name=name: getattr(audit, name) for name in TABLES},
    "explain": lambda audit: audit.explain(GROUP),
    "explanation": lambda audit: audit.explanation(GROUP),
    "history": lambda audit: audit.history(GROUP),
    "owners": lambda audit: audit.owners("b-range-x1"),
    "owners_at": lambda audit: audit.owners_at(LATER, "b-range-x1"),
    "members_at": lambda audit: audit.members_at(LATER),
    "epochs_at": lambda audit: audit.epochs_at(LATER),
    "topics_at": lambda audit: audit.topics_at(LATER),
    "offsets": lambda audit: audit.offsets(),
    "commit_rates": lambda audit: audit.commit_rates(),
    "rewinds": lambda audit: audit.rewinds(),
    "removals": lambda audit: audit.removals(),
    "activity": lambda audit: audit.activity(LATER),
}
OF_ONE_GROUP = {"explain", "explanation", "history"}
"""It is there, so that partitions with other groups do not matter to them."""
NOT_QUESTIONS = {"table", "tables", "create_views", "ingest", "decode", "replay", "keep_offsets", "missing", "settings"}


def cut(folder: Path, *lacking: str) -> Path:
    shutil.copytree(SAMPLE_LOGS, folder / "logs")
    for name in lacking:
        for found in (folder / "logs").glob(name):
            shutil.rmtree(found)
    return folder / "logs"


@pytest.fixture(scope="module")
def lacking(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> CoordinatorAudit:
    """The samples without a partition, the metadata log and the share state log."""
    folder = tmp_path_factory.mktemp("lacking")
    logs = cut(folder, "__consumer_offsets-1", "__cluster_metadata-0", "__share_group_state-*")
    # Only topics tell how many partitions there are: one that was not given is seen between others.
    StoredTables(ThisProcess(), folder / "tables", [[logs]])
    return CoordinatorAudit(spark, str(folder / "tables"), CLUSTER)


def warned(ask: Callable[[CoordinatorAudit], object], audit: CoordinatorAudit) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask(audit)
    return [each for each in caught if each.category is IncompleteLogWarning]


@pytest.mark.parametrize("name", ASKS)
def test_each_answer_says_what_the_logs_lack(lacking: CoordinatorAudit, name: str) -> None:
    found = warned(ASKS[name], lacking)
    said = [str(each.message) for each in found]
    assert any(text.startswith(ABSENT) for text in said) == (name not in OF_ONE_GROUP)
    assert any("topics" in text for text in said)
    assert {each.filename for each in found} == {__file__}, "the line that asks"
    if name.endswith("_at"):
        assert any("the log ends at" in text for text in said)


def test_a_group_that_is_not_there_may_be_in_what_is_missing(tmp_path: Path) -> None:
    """What is missing needs no Spark: this process reads tables in a folder."""
    StoredTables(ThisProcess(), tmp_path / "tables", [[cut(tmp_path, "__consumer_offsets-1")]])
    audit = CoordinatorAudit(ThisProcess(), str(tmp_path / "tables"), CLUSTER)  # type: ignore[arg-type]
    assert [text for text in audit.missing() if "__share" in text] == []
    assert any(text.startswith(ABSENT) for text in audit.missing())
    with pytest.warns(IncompleteLogWarning), pytest.raises(InputError, match="'N-cls-3' lies in __consumer_offsets-1"):
        audit.explain("N-cls-3")


def test_whole_logs_lack_nothing(sample: CoordinatorAudit) -> None:
    assert sample.missing() == sample.missing(GROUP) == []
    assert [text for text in sample.missing(at=LATER) if "the log ends at" not in text] == []
    assert warned(lambda audit: audit.findings, sample) == []


def test_the_share_state_log_is_missing_for_share_groups_only(lacking: CoordinatorAudit) -> None:
    assert any("__share_group_state" in text for text in lacking.missing("D-share-38"))
    assert not any("__share_group_state" in text for text in lacking.missing(GROUP))


def test_every_question_of_the_api_is_asked_here() -> None:
    there = {name for name in vars(CoordinatorAudit) if not name.startswith("_")}
    assert there - NOT_QUESTIONS - ASKS.keys() == {"audit", "lag"}, "jobs, and one that needs end offsets"
