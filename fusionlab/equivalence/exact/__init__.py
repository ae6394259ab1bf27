"""Exact equivalence: two StableHLO programs evaluated at random points of a prime field and compared without tolerance.

    original(x)  mod p   ==   rewritten(x)  mod p      at random x, for random functions exp, tanh, ... and orders

A rewrite here is algebra: chain rule, product rule, transposition, reassociation. Sums, products, quotients and moves
are exact in a field; transcendental functions are uninterpreted (a table of random residues, the same for both
programs); predicates are random too, the same for both, so that every branch is visited. Two different expressions
of degree d agree at a random point with probability at most d/p (Schwartz and Zippel).
"""
