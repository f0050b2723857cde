"""The assignors of Kafka Connect, run by the worker that leads the group."""
