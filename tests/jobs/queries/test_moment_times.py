"""What the offsets of a moment of the logs of groups mean in other logs."""

from __future__ import annotations

from coordinator_core.records import GROUP_LOG
from jobs.queries.from_tables.stored_moment import MomentTimes
from jobs.relations.log_extent import StoredLogExtent
from jobs.relations.moment import AsOf


def test_no_share_state_is_that_of_an_offset_whose_record_has_no_time() -> None:
    """Records of share state in the same dump have no times, either."""
    extents = {(GROUP_LOG, 0): StoredLogExtent(asked=5, left_out=5, last=4)}
    times = MomentTimes.of(AsOf(offsets={0: 5}), extents)
    assert not times.is_timed
    assert times.sure_ms is not None
    assert times.sure_ms < -1
    assert MomentTimes.of(AsOf(), {(GROUP_LOG, 0): StoredLogExtent(last=4)}).sure_ms is None
