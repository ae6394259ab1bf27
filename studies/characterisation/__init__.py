"""The characterisation reproduced: its claims as data (``claims.toml``), our matrix of programs, and a comparison."""
