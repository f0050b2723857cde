"""Lines that a real broker (4.3.1) wrote at INFO, one of each message that it had for a consumer group."""

from coordinator_core.broker_log.lines import events
from tests.shared_data import ROOT

LINES = (ROOT / "tests" / "data" / "broker_log" / "server-4.3.1.log").read_text().splitlines()


def test_what_a_real_broker_wrote() -> None:
    found = [each for number, line in enumerate(LINES, 1) for each in events(line, "server.log", number)]
    assert {each.broker_id for each in found} == {1}
    who = [(each.line, each.kind, each.group_id, each.member_id or each.instance_id, each.epoch) for each in found]
    assert who == [
        (2, "coordinator_loading", None, None, 0),
        (4, "coordinator_loaded", None, None, 0),
        (6, "epoch_bumped", "payments", None, 2),
        (7, "target_computed", "payments", None, 2),
        (8, "member_left", "payments", "i9SaRER-QkiC2vio5Z_-Dg", None),
        (9, "member_expired", "payments", "USa9K3O0QTOZkdRJ7FRudQ", None),
        (11, "member_away", "payments", "_S67MEY1TDKbyRkXwo79mQ", None),
        (12, "member_left", "payments", "till-5", None),
    ]
    assert [(each.reason, each.duration_ms, each.log_partition) for each in found if each.line in (4, 7, 12)] == [
        (None, 5, 1),
        ("uniform", 187, 1),
        ("member was removed by an admin", None, 1),
    ]
