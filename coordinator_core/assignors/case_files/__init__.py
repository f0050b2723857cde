"""Chains of rebalances as JSON: a group, then step by step what happens to it and what Kafka assigned."""
