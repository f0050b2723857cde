"""Chains of rebalances written as JSON: a group, and step by step what happens to it and what Kafka then assigned."""
