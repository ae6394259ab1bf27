"""The characterisation's experiment over again: its matrix of programs, what of it is measured, its claims and ours."""
