"""The characterisation reproduced: its claims as data (``claims.toml``), our matrix of programs, and their comparison.

It is part of the package, and not of ``studies/``, because the command has to run from an installed wheel; its
measurements are in ``studies/``.
"""
