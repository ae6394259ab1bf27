"""Which step of a pipeline, or which pass of XLA, makes a program differ; and the smallest program that shows it."""
