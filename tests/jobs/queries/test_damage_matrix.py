"""Damaged and compacted logs: files and tables answer the same to every question, and warn of the same.

The quick tier has one log with every kind of damage, the long tier a log for each.
"""

import pytest

from jobs.api import CoordinatorAudit
from jobs.queries.interface import RebalanceFilter
from jobs.relations.moment import AsOf
from tests.jobs.queries.damaged_logs import (
    DAMAGES,
    METADATA,
    NOTHING_GONE,
    QUESTIONS,
    Damage,
    Damaged,
    absent_partition,
    all_of_them,
    busiest,
    compacted,
    hole_in_metadata,
    moments,
)
from tests.jobs.queries.same_answers import offsets_then

LONG = [pytest.param(damage, id=name, marks=pytest.mark.long) for name, damage in DAMAGES.items()]


@pytest.fixture(scope="module", params=[pytest.param(all_of_them, id="all of them"), *LONG])
def damage(request: pytest.FixtureRequest) -> Damage:
    found: Damage = request.param
    return found


@pytest.fixture(scope="module")
def damaged(damage: Damage, tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    place = tmp_path_factory.mktemp("damaged")
    audit = CoordinatorAudit(None, str(place / "tables"), damage.__name__)
    found = Damaged(place / "logs", damage, audit)
    audit.ingest(str(found.files.folder))
    audit.decode()
    audit.replay()
    audit.keep_offsets()
    audit.audit()
    return found


@pytest.mark.parametrize("moment", moments(), ids=lambda moment: str(dict(moment.offsets)) or "end")
def test_groups_at_a_moment(damaged: Damaged, moment: AsOf) -> None:
    replayed, stored = (source.answers().at(moment) for source in (damaged.files, damaged.tables))
    assert stored.gaps() == replayed.gaps()
    assert offsets_then(stored) == offsets_then(replayed)
    assert damaged.tables.warnings == damaged.files.about_records


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_groups_went_through(damaged: Damaged, question: str) -> None:
    groups = busiest(damaged.files.answers())
    ask = QUESTIONS[question]
    assert ask(damaged.tables.answers(), groups) == ask(damaged.files.answers(), groups)
    assert damaged.tables.warnings == damaged.files.about_records


def test_both_warn_of_what_is_lost(damage: Damage, damaged: Damaged) -> None:
    list(damaged.tables.answers().rebalances(RebalanceFilter()))
    about_topics = [each for each in damaged.tables.warnings if "metadata log has a hole" in each]
    about_groups = [each for each in damaged.tables.warnings if "the log lacks records" in each]
    assert len(about_topics) == (damage in (hole_in_metadata, all_of_them))
    assert len(about_groups) == (damage not in (hole_in_metadata, compacted, absent_partition, *NOTHING_GONE))


def test_a_hole_in_the_metadata_log_is_missing_and_not_compacted(damage: Damage, damaged: Damaged) -> None:
    topic = METADATA.removesuffix("-0")
    text = "SELECT missing_offsets, compacted_offsets FROM $runs WHERE log_topic = :topic AND job = 'ingest'"
    ((missing, compacted_away),) = damaged.tables.audit.tables.engine().tuples(text, topic=topic)
    assert bool(missing) == (damage in (hole_in_metadata, all_of_them))
    assert not compacted_away
