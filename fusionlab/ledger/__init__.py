"""Static facts of a compiled program.

``thunks`` reads the tree that XLA executes, ``ledger`` counts launches (each leaf once per execution), ``origins``
reads where they come from, ``launch_rows`` makes the table, ``views`` groups it by scope, op, source line or stage,
``refusals`` names why two were not fused. ``saved`` is all of it as a file, ``changes`` compares two of these.
"""
