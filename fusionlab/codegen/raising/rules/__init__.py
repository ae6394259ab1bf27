"""One table of raising rules per op family; slices, gather and scatter are in ``indexing``, sort in ``reduction``."""
