"""Whether an answer is right: the same as on the whole log, unknown with a reason, or wrong."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from coordinator_core.records import GROUP_LOG
from tests.matrix.answers import Answer, Key, Question, Row
from tests.matrix.removals import Removal


@dataclass
class Judged:
    """How an answer compares with the truth. The first that is not empty counts: wrong, needless, silent, unknown.

    ``silent`` is what is wrong where nothing tells that the log lacks something.
    """

    wrong: list[str] = field(default_factory=list)
    needless: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unreasoned: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The verdict about the cell."""
        if self.wrong:
            return "wrong"
        if self.unreasoned:
            return "without reason"
        if self.needless:
            return "needless"
        if self.silent:
            return "silent"
        return "unknown" if self.unknown else "same"


def judge(
    question: Question, true: Answer, said: Answer, removal: Removal, is_touched: Callable[[str | None], bool]
) -> Judged:
    """Compare an answer with that of the whole log; ``is_touched`` tells of which groups something may be unknown."""
    found = Judged()
    told = bool(removal.reason) and re.search(removal.reason, said.said) is not None
    if said.code == 99:
        found.wrong.append(said.said)
        return found
    if said.code == true.code == 1 and said.said == true.said:
        return found
    if said.code == 1:
        untold = found.silent if removal.may_be_silent else found.unreasoned
        (found.unknown if told or true.code == 1 else untold).append(said.said.strip())
        return found
    if question.is_gate and said.code == 0 and true.code == 3 and not (told or removal.forgets):
        found.wrong.append("the gate passes")
    if question.is_gate and said.code == 3 and true.code == 0:
        found.wrong.append("the gate fails")
    if removal.is_numbered:
        true, said = (answer._replace(rows=_by_times(answer.rows)) for answer in (true, said))
    in_two_logs = frozenset(IN_TWO_LOGS.findall(true.said))
    truth, mine = (
        _by_key(question, [row for row in rows if question.group(row) not in in_two_logs])
        for rows in _without_moved_topics(true.rows, said.rows, removal)
    )
    truth, mine = _with_parts(truth, _by_times_of_topics(truth, mine, removal))
    for key, row in truth.items():
        other = mine.get(key)
        touched = is_touched(question.group(row)) or (removal.hides_time and _is_on_kip_848(row))
        if other is None:
            if not touched:
                found.needless.append(f"missing {key}")
            elif told or removal.forgets:
                found.unknown.append(f"missing {key}")
            else:
                found.wrong.append(f"missing in silence {key}")
            continue
        other = _as_the_removal_has_it(question, removal, other, row, told=told)
        _compare(question, key, row, other, found, touched=touched, told=told or removal.forgets)
    _judge_phantoms(question, truth, mine, removal, found, told=told)
    if removal.may_be_silent and not told:
        found.silent, found.wrong = found.wrong, found.silent
    return found


def _as_the_removal_has_it(question: Question, removal: Removal, said: Row, true: Row, *, told: bool) -> Row:
    """Return what is said with the true values of what the removal changes without taking knowledge away."""
    said = _without(removal.lacks, _without(removal.changes, said, true), true, may_be=NOTHING)
    said = _by_other_clock(removal, said, true)
    if told and (removal.others or removal.loses_end):
        said = _as_of_then(said, true)
    if told and removal.others:
        said = _on_other_logs(question, said, true)
    if removal.is_dump:
        said = _without_batches(said, true)
    return _since_shown(said, true) if told else said


def _is_on_kip_848(row: Row) -> bool:
    """Whether a row is of a group of workers in a log of their own, which a moment of another log's offsets cuts at a
    time.
    """
    return "CONNECT" in (row.get("type"), row.get("listing", {}).get("type"))


def _judge_phantoms(
    question: Question,
    truth: Mapping[Key, Row],
    mine: Mapping[Key, Row],
    removal: Removal,
    found: Judged,
    *,
    told: bool,
) -> None:
    """Note the rows that the answer of the whole log does not have."""
    times = {_at_time(key) for key in truth}
    begun = {key[:-1] for key in truth}  # what is left of a compacted log may begin later, as the time of a finding
    # One of several that a finding is about may be the only one that is left: it is the subject then.
    several = {(row["group_id"], row["kind"]) for row in truth.values() if row.get("subject", "") is None}
    for key, row in mine.items():
        if key not in truth:
            is_open = not question.is_certain(row) or (question.counts and (told or removal.forgets))
            is_open |= removal.forgets and "since_ms" in row and (key[:-1] in begun or key[:2] in several)
            is_open |= told and TOPIC_ID.fullmatch(str(row.get("subject"))) is not None and _at_time(key) in times
            kind = found.unknown if is_open else found.wrong
            kind.append(f"phantom {key}: {_short(row)}")


def _by_times(value: Any) -> Any:
    """Return rows with the times of records in the place of their positions, which are numbers of lines in a dump."""
    if isinstance(value, list):
        return [_by_times(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() >= {"partition", "offset", "timestamp_ms"}:
        return value | {"partition": 0, "offset": value["timestamp_ms"]}
    return {name: 0 if name in PLACES and each is not None else _by_times(each) for name, each in value.items()}


PLACES: Final = ("log", "until_log", "logPartition", "logOffset")
"""Fields of rows that are positions, or parts of one."""


def _as_of_then(said: Row, true: Row) -> Row:
    """Return what is said with the true end of a finding that goes on, where the logs that are there end earlier."""
    ends_earlier = said.get("is_open") and true.get("is_open") and said.get("until_ms", 0) < true.get("until_ms", 0)
    if not ends_earlier:
        return said
    is_same = DURATION.sub("", str(said.get("detail"))) == DURATION.sub("", str(true.get("detail")))
    names = {"until_ms", "detail"} if is_same else {"until_ms"}
    return said | {name: true[name] for name in names & true.keys()}


def _on_other_logs(question: Question, said: Row, true: Row) -> Row:
    """Return what is said with the true values of what only the metadata log or the share state log tells.

    Only the metadata log may show that a broker was down (limits.md): without it a member may be named where none is to
    blame.
    """
    names = set(question.rests_on_metadata)
    if BEHIND.sub("", str(said.get("detail"))) == BEHIND.sub("", str(true.get("detail"))):
        names |= {"detail"}
    if true.get("broker_away"):
        names |= {"delayed_by", "broker_away"}
    return said | {name: true[name] for name in names & true.keys()}


DURATION: Final = re.compile(r"\b[0-9.]+ (ms|s|min|h|d)\b *")
BEHIND: Final = re.compile(r"was behind in \d+ of them$")


def _by_other_clock(removal: Removal, said: Row, true: Row) -> Row:
    """Return what is said with the true values where times of the metadata log are others, and no record of the group
    tells them: the end of an owner's topic, and the topics of a last generation that is now behind the metadata log.
    """
    if not re.fullmatch(removal.changes, "topics_at.timestamp_ms"):
        return said
    if all(row.get("until") and row.get("until_log", "") is None for row in (said, true)):
        return said | {"until": true["until"]}
    if _is_end_of_topic_or_near(said, true, removal.moves_topics_ms):
        return said | {name: true[name] for name in ("until", "until_log")}
    if said.get("is_open") and said.get("topics_at", "") is None:
        return said | {"topics_at": true["topics_at"]}
    return said


def _is_end_of_topic_or_near(said: Row, true: Row, apart_ms: int) -> bool:
    """Whether an owner's time ends with the topic by one clock, and by the other with a record so near to that."""
    ends = [row["until"] for row in (said, true) if row.get("until") and "until_log" in row]
    if len(ends) < 2 or (said["until_log"] is None) == (true["until_log"] is None):
        return False
    one, other = map(datetime.fromisoformat, ends)
    return abs(one - other) <= timedelta(milliseconds=apart_ms)


def _since_shown(said: Row, true: Row) -> Row:
    """Return what is said of a share partition with the true record that first shows its next offset.

    That is the first one that is there. Behind missing records it is a later one, and the row leaves open which record
    moved the offset.
    """
    if true.get("advanced") and said.get("advanced", "") is None:
        return said | {"next_offset_shown": true["next_offset_shown"]}
    return said


def _without_batches(said: Row, true: Row) -> Row:
    """Return what is said with the true values of what leader epochs and batches tell, which a consumer does not see.

    Leader epochs prove that no coordinator took over. Without them a new leader by the metadata log may have been
    within the rebalance, as clocks differ: no member is blamed then, and the row says why. The last operation of a
    group may go on: the row of a member that left in it is open.
    """
    names = set()
    if said.get("broker_away") and not true["broker_away"] and said["delayed_by"] is None:
        names |= {"delayed_by", "broker_away"}
    if said.get("is_open") and said.get("left") and said["left"] == true.get("left"):
        names |= {"is_open"}
    return said | {name: true[name] for name in names}


def _near_generations(rows: Sequence[Row], apart_ms: int) -> frozenset[tuple[str, str]]:
    """Return group and topic of each change of a topic that is nearer to a classic generation than clocks are apart.

    A classic group's records have no metadata hash, so that only times tell on which side of the generation it was.
    """
    of_classic = [row for row in rows if apart_ms and _is_classic_rebalance(row)]
    began: dict[str, list[int]] = {}
    for row in of_classic:
        began.setdefault(row["group_id"], []).append(row["at" if "at" in row else "opened"]["timestamp_ms"])
    return frozenset(
        (row["group_id"], topic)
        for row in of_classic
        for each in row["causes"]
        if each["source"] == "cluster metadata"
        for topic in each["topics"]
        if any(abs(each["at"]["timestamp_ms"] - began_ms) <= apart_ms for began_ms in began[row["group_id"]])
    )


def _without_moved_topics(true: Sequence[Row], said: Sequence[Row], removal: Removal) -> Iterator[list[Row]]:
    """Yield both rows without causes about topics that may have moved to another classic generation, and their counts.

    The counts name no topic.
    """
    near = _near_generations([*true, *said], removal.moves_topics_ms)
    for rows in (true, said):
        yield [
            row | {"causes": [each for each in row["causes"] if not _is_moved(row["group_id"], each, near)]}
            if _is_classic_rebalance(row)
            else row
            for row in rows
            if not removal.moves_topics_ms or OF_CLASSIC_TOPICS.match(row.get("line", "")) is None
        ]


def _by_times_of_topics(truth: Mapping[Key, Row], mine: Mapping[Key, Row], removal: Removal) -> Mapping[Key, Row]:
    """Return what is said by the true keys, where a finding begins or ends by the other clock: when a topic changed, or
    when a broker was away.
    """
    apart_ms, clock_ms = removal.moves_topics_ms, removal.clock_ms
    by_rest = {key[:-1]: key for key, row in truth.items() if "since_ms" in row and key not in mine}
    found: dict[Key, Row] = {}
    for key, row in mine.items():
        true = by_rest.get(key[:-1]) if (apart_ms or clock_ms) and key not in truth else None
        later_ms = 0 if true is None else row["since_ms"] - truth[true]["since_ms"]
        if true is not None and (abs(later_ms) <= apart_ms or later_ms == clock_ms):
            moved = ("since_ms", "until_ms", "detail")
            found[true] = row | {name: truth[true][name] for name in moved}
        else:
            found[key] = row
    return found


IN_TWO_LOGS: Final = re.compile(f"group '([^']+)' is in {GROUP_LOG} and in")
"""The moment is within the move of a group of workers: the whole logs do not say in which of them it is, so that they
are no truth about what one log alone says."""


def _with_parts(truth: Mapping[Key, Row], mine: Mapping[Key, Row]) -> tuple[Mapping[Key, Row], Mapping[Key, Row]]:
    """Return both with runs of commits in one row: what is said where a doubt about the owner cut a run into several,
    and what is true where such a part goes on over the end of a true run, which the doubt hides.
    """
    joined = dict(mine)
    parts: dict[Key, int] = {}
    runs = [(key, row) for key, row in mine.items() if row.get("kind") == "forward"]
    for key, row in sorted(runs, key=lambda run: run[1]["since"]["offset"]):
        last = _run_before(row, {other: joined[other] for other, _ in runs if other in joined}) or key
        is_part = row["missing"] is not None or last in parts
        if key not in truth and is_part and joined[last]["offset_after"] == row["offset_before"]:
            parts[last] = row["until"]["offset"]
            joined[last] = _one_run(joined[last], row)
            del joined[key]
    whole = dict(truth)
    true_runs = [(key, row) for key, row in truth.items() if parts and row.get("kind") == "forward"]
    for key, row in sorted(true_runs, key=lambda run: run[1]["since"]["offset"]):
        first = _run_before(row, {part: whole[part] for part in parts if part in whole})
        if first is not None and key not in mine and row["until"]["offset"] <= parts[first]:
            whole[first] = _one_run(whole[first], row)
            del whole[key]
    return whole, joined


def _run_before(row: Row, runs: Mapping[Key, Row]) -> Key | None:
    """Return the key of the run of commits of the same partition that ends last before this one."""
    before = {
        key: run["until"]["offset"]
        for key, run in runs.items()
        if (run["topic"], run["partition"]) == (row["topic"], row["partition"])
        and run["until"]["offset"] < row["since"]["offset"]
    }
    return max(before, key=before.__getitem__, default=None)


def _one_run(first: Row, row: Row) -> Row:
    """Return two runs of commits as one."""
    sums = {"commits": first["commits"] + row["commits"], "offsets_per_second": None}
    return first | sums | {name: row[name] for name in ("until", "offset_after")}


def _is_classic_rebalance(row: Row) -> bool:
    """Whether the row is about a rebalance of a classic group, or about the generation that it made."""
    return row.get("group_type") == "CLASSIC" and "causes" in row


def _is_moved(group: str, reason: Row, near: frozenset[tuple[str, str]]) -> bool:
    return reason["kind"] in MOVED_CAUSES and any((group, topic) in near for topic in reason["topics"])


NOTHING: Final = (None, -1)
"""How a field without a value is said: -1 is the time of a record that has none."""


def _without(fields: str, said: Any, true: Any, name: str = "", may_be: Sequence[Any] | None = None) -> Any:
    """Return what is said with the true values of these fields, where what is said ``may_be`` (None: anything)."""
    if name and re.fullmatch(fields, name) and (may_be is None or said in may_be):
        return true
    if isinstance(said, dict) and isinstance(true, dict):
        prefix = f"{name}." if name else ""
        return {key: _without(fields, each, true.get(key), f"{prefix}{key}", may_be) for key, each in said.items()}
    if isinstance(said, list) and isinstance(true, list) and len(said) == len(true):
        pairs = enumerate(zip(said, true, strict=True))
        return [_without(fields, one, other, f"{name}[{number}]", may_be) for number, (one, other) in pairs]
    return said


CLAIMED: Final = ("outcome", "from_epoch", "members_before", "members_after", "units_moved", "idle_ms")
"""Fields of a rebalance that have no value, or "unknown", where they are in doubt: another one is wrong in any row."""


def _compare(question: Question, key: Key, row: Row, other: Row, found: Judged, *, touched: bool, told: bool) -> None:
    partly = question.ignored | frozenset(other.get("incompleteLists", ()))
    partly |= question.rests_on if told and touched else frozenset()
    partly |= {proof for proof, first in question.proofs if other.get(first) is None}
    names = [name for name in row if name not in partly and row[name] != other.get(name)]
    different = [text for name in names for text in _differences(name, other.get(name), row[name])]
    if not different and question.is_certain(row) <= question.is_certain(other):
        return
    text = f"{key}: {'; '.join(different)}"
    if question.is_certain(other) and different:
        doubted = Doubted(*(frozenset(other.get(name, ())) for name in ("unnamedTopics", "topicsInDoubt")))
        leaves_out = all(says_less(other.get(name), row[name], doubted) for name in names)
        if not touched and leaves_out:
            found.needless.append(text)
        else:
            is_open = (leaves_out or question.counts) and touched and told
            (found.unknown if is_open else found.wrong).append(text)
    elif not touched:
        found.needless.append(text)
    else:
        claims = [name for name in CLAIMED if other.get(name) not in (None, "unknown", row.get(name))]
        (found.wrong if claims else found.unknown).append(text)


def _differences(name: str, said: Any, true: Any) -> list[str]:
    """In words where two values differ, as deep as they have the same form."""
    if isinstance(said, dict) and isinstance(true, dict) and said.keys() == true.keys():
        inner = [(f"{name}.{key}", said[key], true[key]) for key in true]
    elif isinstance(said, list) and isinstance(true, list) and len(said) == len(true):
        inner = [(f"{name}[{number}]", said[number], each) for number, each in enumerate(true)]
    else:
        return [f"{name}: {_short(said)} for {_short(true)}"]
    return [text for each in inner if each[1] != each[2] for text in _differences(*each)]


def _at_time(of_finding: Key) -> Key:
    """Return the key of a finding without its subject: a topic may be named by its id."""
    return (*of_finding[:2], of_finding[-1])


TOPIC_ID: Final = re.compile(r"[\w-]{22}(-\d+)?")
"""An id in the place of a name, perhaps with the number of a partition."""
TOPIC_CAUSES: Final = ("topic_created", "topic_deleted", "topic_grown", "rack_changed", "regex_resolved")
MOVED_CAUSES: Final = (*TOPIC_CAUSES, "topic_metadata_changed")
"""With the last one, a leader that did not know a topic yet."""
OF_CLASSIC_TOPICS: Final = re.compile(rf'\w+_causes_total{{cause="({"|".join(MOVED_CAUSES)})".*type="CLASSIC"')
OF_STATUS: Final = re.compile(r"; from epoch \d+: .*")
NO_STATUS: Final = re.compile(r"; from epoch \d+: its status is not known: ")
LEFT_OUT: Final = re.compile(r" \(the limit\)|; the group has no members since")
"""What a text may leave out where it is not known."""
OF_STORM: Final = re.compile(r"; causes: .*")


class Doubted(NamedTuple):
    """What an answer says of topics: ids in the place of names, and the names of topics that may be gone."""

    ids: frozenset[str] = frozenset()
    may_be_gone: frozenset[str] = frozenset()


NO_DOUBT: Final = Doubted()


def says_less(said: Any, true: Any, doubted: Doubted = NO_DOUBT) -> bool:
    """Whether what is said is true, but for nulls where something is not known.

    Causes may be left out, or be called unknown or a change of topics without its kind. The detail of a status that is
    not known is the reason; that of a share partition is called unknown. Topics may be named by their ids, or be some
    that may be gone, where the answer says so; of offsets, too. A number of deliveries may lack that it is the group's
    limit, and static members that are gone that the group has no members since.
    """
    if said is None or said == true:
        return True
    if isinstance(said, dict) and isinstance(true, dict):
        left_out = {None: {"detail"}, "unknown": {"status"}}.get(said.get("status", ""), set())
        left_out |= {each for each in said.keys() - true.keys() if each.rpartition("-")[0] in doubted.may_be_gone}
        return all(says_less(value, true.get(name), doubted) for name, value in said.items() if name not in left_out)
    if isinstance(said, list) and isinstance(true, list):
        if _are_causes(said) and _are_causes(true):
            return _causes_say_less({each["kind"] for each in said}, {each["kind"] for each in true})
        if all(isinstance(each, str) for each in [*said, *true]):
            return _are_named_by_ids(said, true, doubted)
        return len(said) == len(true) and all(says_less(*both, doubted) for both in zip(said, true, strict=True))
    if isinstance(said, str) and isinstance(true, str):
        if said == LEFT_OUT.sub("", true):
            return True
        # Causes may be called unknown in the text of a storm, and the status of a topology in that of ``not_ready``.
        parts = [OF_STORM] if OF_STORM.search(said) else [OF_STATUS] if NO_STATUS.search(said) else []
        return any(part.sub("", said) == part.sub("", true) for part in parts)
    return False


def _are_causes(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(each, dict) and {"kind", "detail"} <= each.keys() for each in values)


def _causes_say_less(said: set[str], true: set[str]) -> bool:
    vague = {"unknown"} | ({"topic_metadata_changed"} if true.intersection(TOPIC_CAUSES) else set())
    return said <= true | vague


def _are_named_by_ids(said: list[str], true: list[str], doubted: Doubted) -> bool:
    """Whether partitions are the same but for topics that are named by ids: one id for all partitions of a topic.

    Other ids may be those of topics that are gone, whose partitions the true answer leaves out.
    """
    by_id = _by_topic(each for each in said if each not in true)
    by_name = _by_topic(each for each in true if each not in said)
    by_id = {topic: numbers for topic, numbers in by_id.items() if topic not in doubted.may_be_gone}
    named, unnamed = (Counter(map(tuple, each.values())) for each in (by_name, by_id))
    return by_id.keys() <= doubted.ids and named <= unnamed


def _by_topic(partitions: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in partitions:
        topic, _, number = each.rpartition("-")
        found.setdefault(topic, []).append(number)
    return {topic: sorted(numbers) for topic, numbers in found.items()}


def _by_key(question: Question, rows: Sequence[Row]) -> Mapping[Key, Row]:
    """Return the rows by their key. Of several with one key, such as those of a group of workers that is in two logs,
    the first is the one that claims most.
    """
    found: dict[Key, Row] = {}
    lines = (row for row in rows if not row.get("line", "").startswith("#"))
    for row in sorted(lines, key=lambda row: not question.is_certain(row)):
        key = question.key(row)
        while key in found:
            key = (*key, "again")
        found[key] = row
    return found


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 120 else f"{text[:117]}..."
