"""Classic groups: JoinGroup and SyncGroup, with the embedded client protocols."""
