"""Follow a coordinator's log while it is written: rebalances as they begin and end, findings when they arise."""
