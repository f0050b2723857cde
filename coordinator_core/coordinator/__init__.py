"""The group coordinator as an executable model: requests in, records and responses out."""
