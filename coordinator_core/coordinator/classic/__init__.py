"""Requests of classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""
