"""The page over HTTP: it asks for the group, the window and the moment that it shows."""
