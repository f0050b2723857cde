"""Requests of classic groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""
