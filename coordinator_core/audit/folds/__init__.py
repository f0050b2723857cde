"""What findings rest on: one pass over the rows of a group or of its commits, folded into what a finding asks for."""
