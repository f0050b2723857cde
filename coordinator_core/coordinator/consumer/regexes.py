"""Subscriptions by regex: when they are resolved, and what a resolution changes (KIP-848)."""

from enum import IntEnum

from coordinator_core.coordinator.consumer import records
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.groups import re2
from coordinator_core.groups.consumer.state import ConsumerMember, ResolvedRegex
from coordinator_core.java.hash_codes import utf16

RESOLVE = "consumer regexes resolved"
REFRESH_MIN_INTERVAL_MS = 10_000
"""The regexes of one group are not resolved again before this time has passed."""


class RegexChange(IntEnum):
    """What a request changed about the member's regex."""

    NONE = 0
    UPDATED = 1
    """The member has another regex whose topics are not known yet."""
    RESOLVED = 2
    """The member has another regex whose topics are known, or no regex any more."""


def update(op: Operation, group: LiveConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> RegexChange:
    """Update the member's regex: drop regexes that no member subscribes to any more, and have regexes resolved when
    due.

    Raises ApiError for a new regex that is not valid.
    """
    before, after = old.subscribed_topic_regex or "", new.subscribed_topic_regex or ""
    change, is_new = RegexChange.NONE, False
    subscribers = group.subscriptions.regexes
    if (old.subscribed_topic_regex or "") != after:
        change = RegexChange.UPDATED
        if before and subscribers.get(before) == 1:
            op.write(*records.resolved_regex(group.group_id, before, None))
        if not after:
            change = RegexChange.RESOLVED
        elif after not in subscribers:
            validate(after)
            is_new = True
        elif after in group.log.regexes:
            change = RegexChange.RESOLVED
    if is_new or subscribers:
        _maybe_resolve(op, group, before, after, is_new=is_new)
    return change


def validate(regex: str) -> None:
    """Raise ApiError if the regex is not valid."""
    error = re2.error_in(regex)
    if error is not None:
        raise ApiError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        )


def _maybe_resolve(op: Operation, group: LiveConsumerGroup, before: str, after: str, *, is_new: bool) -> None:
    """All regexes of a group are resolved together, so that they cause one rebalance."""
    key = f"{group.group_id}-regex"
    last = next(iter(group.log.regexes.values()), None)
    if key in op.memory.tasks or (last is not None and op.now <= last.timestamp + REFRESH_MIN_INTERVAL_MS):
        return
    wanted = set(group.subscriptions.regexes)
    if before and before != after and group.subscriptions.regexes.get(before) == 1:
        wanted.discard(before)
    if after:
        wanted.add(after)
    due = (
        is_new
        or len(wanted) != len(group.log.regexes)
        or (0 if last is None else last.version) < op.memory.new_topics_version
        or last is None
        or op.now > last.timestamp + op.memory.config.group_consumer_regex_refresh_interval_ms
    )
    if due and wanted:
        op.schedule(key, RESOLVE, group.group_id, tuple(sorted(wanted)))


def resolve(op: Operation, group_id: str, regexes: tuple[str, ...]) -> None:
    """Set the topics of the regexes as of now. The group epoch is bumped if one of them has other topics than
    before.
    """
    group = op.memory.live.get(group_id)
    if not isinstance(group, LiveConsumerGroup):
        return
    subscriptions = group.subscriptions.copy()
    bump = False
    for regex in regexes:
        if regex not in group.subscriptions.regexes:
            continue
        topics = sorted(re2.matching(regex, op.topics.by_name), key=utf16)
        former = group.log.regexes.get(regex)
        old_topics = [] if former is None else former.topics
        if set(old_topics) != set(topics):
            bump = True
            subscriptions.count_resolution(old_topics, -1)
            subscriptions.count_resolution(topics, 1)
        op.write(*records.resolved_regex(group_id, regex, ResolvedRegex(topics, op.topics.version, op.now)))
    metadata_hash = op.memory.metadata_hash(subscriptions.topics, op.topics)
    if bump or metadata_hash != group.metadata_hash:
        epoch = group.group_epoch + 1
        op.write(*records.group_epoch(group_id, epoch, metadata_hash))
        group.metadata_seen(op.now, epoch)
