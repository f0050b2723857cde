"""The model of a share partition does what Kafka's own classes do, in random scripts that both are given."""

from pathlib import Path

from tests.broker.share_leader import kafkas_leader
from tests.broker.share_leader.scripts import record_script
from tests.core.coordinator.share_delivery import ModelOfDelivery

SCRIPTS, STEPS = 100, 200


def test_random_scripts_are_equal_step_by_step(tmp_path: Path) -> None:
    steps = 0
    with kafkas_leader(tmp_path) as do:
        for seed in range(1_000, 1_000 + SCRIPTS):
            model = ModelOfDelivery()
            for number, line in enumerate(record_script(seed, STEPS, do)):
                assert model.do_again(line) == line, f"script {seed}, step {number}"
                steps += 1
    assert steps > SCRIPTS * STEPS * 0.9
