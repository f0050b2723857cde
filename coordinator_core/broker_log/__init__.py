"""What brokers' application logs say of the group coordinator: lines, the events in them, and their time zone."""
