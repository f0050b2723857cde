"""From a replayed log to epochs, rebalances, causes, memberships and assignment intervals."""
