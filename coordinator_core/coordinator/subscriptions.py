"""Subscriptions of a consumer or share group, as counts: by topic name, by resolved regex, and by regex."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from coordinator_core.groups.consumer.state import ConsumerMember
from coordinator_core.java.hash_codes import utf16


@dataclass(slots=True)
class Subscriptions:
    """Counts without zeros. ``by_name`` counts members, ``by_regex`` resolved regexes, ``regexes`` members again."""

    by_name: dict[str, int] = field(default_factory=dict)
    by_regex: dict[str, int] = field(default_factory=dict)
    regexes: dict[str, int] = field(default_factory=dict)

    def copy(self) -> "Subscriptions":
        """Return a copy that can be changed without changing this one."""
        return Subscriptions(dict(self.by_name), dict(self.by_regex), dict(self.regexes))

    @property
    def topics(self) -> set[str]:
        """The names of all subscribed topics, whether they exist or not."""
        return self.by_name.keys() | self.by_regex.keys()

    def among(self, names: Iterable[str]) -> set[str]:
        """Return those of the topic names that are subscribed."""
        return {name for name in names if name in self.by_name or name in self.by_regex}

    def count_member(self, member: ConsumerMember, by: int) -> None:
        """Count a member that is added (1) or removed (-1)."""
        self.count_names(member.subscribed_topic_names, by)
        if member.subscribed_topic_regex:
            count(self.regexes, (member.subscribed_topic_regex,), by)

    def count_names(self, names: Iterable[str], by: int) -> None:
        """Count the names of a member that is added (1) or removed (-1)."""
        count(self.by_name, names, by)

    def count_resolution(self, topics: Iterable[str], by: int) -> None:
        """Count topics that a regex now matches (1) or no longer matches (-1)."""
        count(self.by_regex, topics, by)

    def exchange(self, counts: dict[str, int], old: Collection[str], new: Collection[str]) -> tuple[set[str], set[str]]:
        """Count topics in the place of others; return those that are subscribed now, and those that no longer are."""
        names = *old, *new
        before = self.among(names)
        count(counts, old, -1)
        count(counts, new, 1)
        after = self.among(names)
        return after - before, before - after

    def are_homogeneous(self, members: int) -> bool:
        """Whether all members have the same subscription: equal names, or one regex and no names."""
        if not self.regexes:
            return all(self.by_name.get(topic, 0) == members for topic in self.topics)
        # A member has one regular expression at most: if the first one is that of all members, there is no other.
        if next(iter(self.regexes.values())) != members:
            return False
        return not self.by_name and all(count == 1 for count in self.by_regex.values())


def count(counts: dict[str, int], keys: Iterable[str], by: int) -> None:
    """Count each key by 1 or -1; a count of 0 is removed."""
    for key in keys:
        number = counts.get(key, 0) + by
        if number > 0:
            counts[key] = number
        else:
            counts.pop(key, None)


def topic_names(names: list[str]) -> list[str]:
    """Return names without repetitions, in the order in which a record lists them."""
    return sorted(set(names), key=utf16)
