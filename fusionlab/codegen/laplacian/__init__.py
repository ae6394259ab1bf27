"""The forward Laplacian: a value, its Laplacian and its derivatives (a jet) pushed through the ops of a program.

    interpreter   the walk over the ops, and their rules by name
    rules         how a jet passes an op: products of two values are in ``elementwise``, contractions in ``dot_general``
    chains        functions of one value (tanh, a whole activation), by JAX's own derivatives of them
    jet, owners   a jet, and the electrons by whose coordinates its derivatives are
    sparsity      where directions become dense in a run, and what that costs
    adjoint       the Laplacian by a reverse pass instead, from the second-order sources of each op

An op that no rule names is differentiated by JAX as a whole (``rules.generic``).
"""
