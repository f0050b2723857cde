"""Several assignors on the same case: balance, movement and rack figures side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from coordinator_core.assignors import registry
from coordinator_core.assignors.assignment_metrics import AssignmentMetrics, measure
from coordinator_core.assignors.case_files.case_types import run_case
from coordinator_core.assignors.client.clients import CLIENTS
from coordinator_core.assignors.inputs import AssignedGroupType, Assignment, ClassicGroupSpec, GroupSpecs
from coordinator_core.assignors.profiles import DEFAULT, Profile
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError, InputError


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one assignor in one round of a case; ``error`` says why there are none.

    ``round`` counts assignments from 1; ``all`` sums them up (for members, units and imbalance it has the largest).
    """

    assignor: str
    round: str
    members: int
    units: int
    imbalance: int
    kept: int
    moved: int
    fresh: int
    lost: int
    rack_misses: int
    error: str = ""


NO_METRICS = AssignmentMetrics(0, 0, 0, 0, 0, 0, 0, 0)


def compare_case(
    case: Mapping[str, object], profile: Profile = DEFAULT, assignors: Sequence[str] | None = None
) -> list[Row]:
    """Run a case with each assignor (None: all of its type of group); return the rows by round, then those of all
    rounds.

    Each assignor starts from its own former results where the case carries them from step to step.

    Raises:
        InputError: an assignor is unknown, or nothing is assigned in the case.
    """
    rows: list[Row] = []
    for name in assignors or _names(case, profile):
        recorder = _Recorder(name)
        run_case(case, profile, assign=recorder)
        rows += recorder.rows
        rows.append(Row(name, "all", **asdict(_total(recorder.rows))))
    return rows


class _Recorder:
    """Assigns with one assignor, whatever the case asks for, and keeps the figures of each round."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[Row] = []

    def __call__(self, _: str, spec: GroupSpecs, image: TopicImage, profile: Profile) -> Assignment[object]:
        number = str(len(self.rows) + 1)
        try:
            assignment = registry.assign(self.name, spec, image, profile)
        except AssignorError as error:
            self.rows.append(Row(self.name, number, **asdict(NO_METRICS), error=str(error)))
            raise
        self.rows.append(Row(self.name, number, **asdict(measure(spec, image, assignment))))
        return assignment


def _names(case: Mapping[str, object], profile: Profile) -> list[str]:
    """The names under which assignors serve the case's type of group."""
    types: set[AssignedGroupType] = set()
    of_client: dict[str, None] = {}

    def noted(name: str, spec: GroupSpecs, image: TopicImage, profile: Profile) -> Assignment[object]:
        types.add(spec.type)
        if isinstance(spec, ClassicGroupSpec):
            of_client.update(dict.fromkeys(CLIENTS.get(spec.client, ())))
        return registry.assign(name, spec, image, profile)

    run_case(case, profile, assign=noted)
    if not types:
        raise InputError(f"case {case.get('id')!r} assigns nothing that could be compared")
    if of_client:
        return list(of_client)
    return [name for group_type, name in registry.ASSIGNORS if group_type in types]


def _total(rounds: Sequence[Row]) -> AssignmentMetrics:
    return AssignmentMetrics(
        members=max((result.members for result in rounds), default=0),
        units=max((result.units for result in rounds), default=0),
        imbalance=max((result.imbalance for result in rounds), default=0),
        kept=sum(result.kept for result in rounds),
        moved=sum(result.moved for result in rounds),
        fresh=sum(result.fresh for result in rounds),
        lost=sum(result.lost for result in rounds),
        rack_misses=sum(result.rack_misses for result in rounds),
    )
