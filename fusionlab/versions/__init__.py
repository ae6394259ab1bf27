"""One program compiled by several versions of XLA: environments, compiles apart, what changed, and its cause."""
