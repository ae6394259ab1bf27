"""One table of forward-Laplacian rules per op family; functions of one value are in ``laplacian.chains``."""
