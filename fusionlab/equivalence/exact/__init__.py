"""Exact equivalence: two StableHLO programs evaluated at random points of a prime field and compared without tolerance.

    original(x)  mod p   ==   rewritten(x)  mod p      at random x, for random functions exp, tanh, ... and orders

A rewrite here is algebra: chain rule, product rule, transposition, reassociation. Sums, products, quotients and moves
are exact in a field; transcendental functions are uninterpreted (a table of random residues, the same for both
programs); predicates are random too, the same for both, so that every branch is visited. Two different expressions
of degree d agree at a random point with probability at most d/p (Schwartz and Zippel).

    identity                 the verdict: points, both programs at each, ties
    evaluation               the nodes of one program over an arithmetic, by ``rules``, one table per family of ops
    field, machine           arithmetics: a prime field for floats, NumPy for integers, booleans and constants
    values                   what is evaluated: known from the program, or drawn
    fusion                   sums and products in one sweep
    steering                 outcomes of comparisons under which conjunctions are true
    integers, coverage       the integers drawn, and what they do not cover
    discrete, singularity    for fuse-jvp-replay: integers in a sum of derivatives; JAX's test for singular matrices

Random numbers are integer ops on a drawn key. ``rules.elementwise._bitcast`` makes floats of their bits,
``rules.rule.uninterpreted`` stands for ``rng_bit_generator``, and ``evaluation`` refuses ``rng`` for its effect.
"""
