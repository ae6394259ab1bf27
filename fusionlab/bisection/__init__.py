"""Bisection: the step of a pipeline, or the XLA pass, that makes a program differ, and a minimal reproducer."""
