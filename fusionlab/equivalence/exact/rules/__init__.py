"""One table of evaluation rules per op family; a rule reads a node once and returns its step."""
