"""Static facts of a compiled program.

``thunks`` reads the tree that XLA executes, ``ledger`` counts launches (each leaf once per execution), ``origins``
attributes them to phases and stages, ``launch_rows`` makes the table, ``refusals`` names why two were not fused.
"""
