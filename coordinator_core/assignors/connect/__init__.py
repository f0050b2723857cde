"""The assignors of Kafka Connect, which the leader of the group runs."""
