"""Pictures of programs: name stacks folded to a tree of scopes, drawn as blocks and flows; and graphs as files."""
