"""The one form of stored state: what is written is read again, and nothing else is."""

import ast
import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import pytest

from coordinator_core.audit.group_audit import STATE_FORM, AuditedShareState, AuditedState, GroupAudit
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.errors import StateFormatError
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.holdings import Ownership
from coordinator_core.records import Family, LogPosition
from coordinator_core.state_json import VERSION, OneOf, StateForm, StoredAs
from jobs.sources.files import LogFile, find_logs
from jobs.sources.log_reader import LogReader
from tests.core.groups.stored_groups import decode_group, encode_group
from tests.shared_data import ROOT

FORM = ROOT / "tests" / "data" / "state_form.txt"
WHOLE = Coverage({partition: [(0, 10_000)] for partition in range(50)})
SAMPLES = ROOT / "data" / "samples" / "logs"


class Kind(Enum):
    ONE = "one"


class Pair(NamedTuple):
    name: str
    data: bytes


@dataclass(slots=True)
class First:
    number: int


@dataclass(slots=True)
class Second:
    number: int


@dataclass(slots=True)
class Everything:
    count: int
    text: str = "default"
    data: bytes = b""
    pairs: tuple[Pair, ...] = ()
    numbers: dict[int, list[int]] = field(default_factory=dict)
    kind: Kind | None = None
    names: Annotated[frozenset[str], StoredAs(list[str], sorted, frozenset)] = frozenset()
    either: Annotated[First | Second, OneOf({First: "first", Second: "second"})] | None = None


EVERYTHING = StateForm(Everything, "thing")


def test_what_is_written_is_read_again() -> None:
    state = Everything(
        1,
        'two\n"\u0000\u20ac',
        b"\x00\xff",
        (Pair("a", b"\xfb\xff"), Pair("b", b"")),
        {3: [1, 2], 2: []},
        Kind.ONE,
        frozenset("ba"),
        Second(4),
    )
    text = EVERYTHING.encode(state)
    again = EVERYTHING.decode(text)
    assert again == state
    assert list(again.numbers) == [3, 2], "the order of a dict means something"
    stored = json.loads(text)
    assert stored["version"] == VERSION
    assert stored["state"]["names"] == ["a", "b"], "a set has no order of its own"
    assert stored["state"]["either"] == ["second", {"number": 4}]


def stored(**changes: Any) -> str:
    state: dict[str, Any] = json.loads(EVERYTHING.encode(Everything(1)))["state"]
    return json.dumps({"version": VERSION, "state": {**state, **changes}})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not a stored thing"),
        ("[]", "not a stored thing"),
        ("{}", "not a stored thing"),
        (stored()[:-2], "not a stored thing"),
        (
            '{"version": 1, "state": {}}',
            f"a thing stored in form 1, this release reads {VERSION}: rebuild from the log",
        ),
        (
            '{"version": "5.5.3.1"}',
            f"a thing stored in form 5.5.3.1, this release reads {VERSION}: rebuild from the log",
        ),
        (json.dumps({"version": VERSION}), "state: Field required"),
        (json.dumps({"version": VERSION, "state": {"count": 1}}), "state.text: Field required"),
        (stored(other=1), "state.other: Unexpected keyword argument"),
        (stored(count="1"), "state.count: Input should be a valid integer"),
        (stored(count=None), "state.count: Input should be a valid integer"),
        (stored(data="?"), "state.data: Data should be valid base64"),
        (stored(pairs=[["a"]]), "state.pairs.0.1: "),
        (stored(pairs=[["a", "?"]]), "state.pairs.0.1: Data should be valid base64"),
        (stored(numbers={"x": []}), "state.numbers.x"),
        (stored(kind="two"), "state.kind: Input should be 'one'"),
        (stored(either=["third", {"number": 1}]), "state.either: "),
        (stored(either=[]), "state.either: "),
    ],
)
def test_any_other_text_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(StateFormatError) as raised:
        EVERYTHING.decode(text)
    assert complaint in str(raised.value)


def test_what_a_field_cannot_read_is_refused() -> None:
    @dataclass
    class Odd:
        half: Annotated[float, StoredAs(int, lambda value: round(value * 2), half_of)] = 0.5

    form = StateForm(Odd, "odd thing")
    assert form.decode(form.encode(Odd(1.5))) == Odd(1.5)
    with pytest.raises(StateFormatError, match=r"state\.half"):
        form.decode(form.encode(Odd(-1.0)))


def half_of(number: int) -> float:
    if number < 0:
        raise ValueError("below 0")
    return number / 2


def test_the_order_in_which_units_came_is_not_stored() -> None:
    form = StateForm(Ownership, "owners")
    at = LogPosition(0, 1, 2)
    one, other = Ownership(), Ownership()
    for owners, numbers in ((one, [1, 2]), (other, [2, 1])):
        for number in numbers:
            owners.owners.take(("partition", f"t{number}"), numbers, "m")
            owners.idle.setdefault(("partition", "idle"), {})[number] = at
    assert form.encode(one) == form.encode(other)
    assert form.decode(form.encode(one)) == one


def test_the_states_of_recorded_groups_are_read_again() -> None:
    seen = set()
    for audit in audits():
        text = audit.state()
        state = STATE_FORM.decode(text)
        assert STATE_FORM.encode(state) == text
        assert encode_group(decode_group(encode_group(state.group))) == encode_group(state.group)
        seen.add((state.group.type, state.targets is not None and state.targets.view is not None))
    assert len(seen) > 4


def audits() -> Iterator[GroupAudit]:
    """All groups of the sample logs, in the middle of their life and at its end."""
    groups: dict[str, GroupAudit] = {}
    partitions: dict[int, list[LogFile]] = {}
    for file in find_logs([SAMPLES]):
        if file.family is Family.GROUP:
            partitions.setdefault(file.partition, []).append(file)
    for files in partitions.values():
        for number, record in enumerate(LogReader(files, pytest.fail).records()):
            audit = groups.get(record.group_id)
            if audit is None:
                audit = GroupAudit.begin(record.group_id, Family.GROUP, None, WHOLE, AuditSettings(), from_start=True)
                groups[record.group_id] = audit
            audit.feed(record, 0)
            if number % 7 == 0:
                yield audit
    yield from groups.values()


def test_a_change_of_a_class_of_state_raises_the_version(request: pytest.FixtureRequest) -> None:
    seen: set[Any] = set()
    fields = [*fields_of(AuditedState, seen), *fields_of(AuditedShareState, seen)]
    form = "\n".join([f"version {VERSION}", *sorted(fields), ""])
    if request.config.getoption("--rewrite"):
        FORM.write_text(form, encoding="utf-8")
    assert FORM.read_text(encoding="utf-8") == form, (
        "raise VERSION in coordinator_core/state_json.py, so that stored states are made again; then use --rewrite"
    )


def fields_of(of: Any, seen: set[Any]) -> Iterator[str]:
    """The fields of a class of state and of those inside it, as they are declared."""
    if get_origin(of) is not None:
        for part in [part for part in get_args(of) if isinstance(part, StoredAs)] or get_args(of):
            yield from fields_of(part, seen)
        return
    if isinstance(of, StoredAs):
        yield from fields_of(of.form, seen)
    elif isinstance(of, OneOf):
        yield from (f"{state.__name__} is {name}" for state, name in of.names.items())
    if not isinstance(of, type) or not (is_dataclass(of) or hasattr(of, "_fields")) or of in seen:
        return
    seen.add(of)
    written = written_types(of)
    for name, hint in get_type_hints(of, include_extras=True).items():
        yield f"{of.__name__}.{name}: {written[name]}"
        yield from fields_of(hint, seen)


def written_types(of: type) -> dict[str, str]:
    """The types of the fields as the source has them: their repr has addresses, and is another in each Python."""
    types: dict[str, str] = {}
    for base in reversed(of.__mro__):
        if "__annotations__" in vars(base):
            (tree,) = ast.parse(inspect.getsource(base)).body
            fields = [node for node in tree.body if isinstance(node, ast.AnnAssign)]
            types |= {ast.unparse(node.target): ast.unparse(node.annotation) for node in fields}
    return types
