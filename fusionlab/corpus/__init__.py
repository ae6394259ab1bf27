"""A corpus of programs with expected launches and reference outputs: what a compiler's nightly can compile and run."""
