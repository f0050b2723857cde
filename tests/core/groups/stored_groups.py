"""Groups as JSON, in the form in which a night stores the whole state of a group's audit."""

from coordinator_core.groups.group import Group
from coordinator_core.state_json import StateForm

_FORM = StateForm(Group, "group")


def encode_group(group: Group) -> str:
    return _FORM.encode(group)


def decode_group(text: str) -> Group:
    return _FORM.decode(text)
