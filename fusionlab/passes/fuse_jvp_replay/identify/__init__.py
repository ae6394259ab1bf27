"""What steps 2 and 3 try: one choice of directions, positions x and functions F after another, evaluated exactly.

    trials               which choices, in which order, and the refusal where none holds
    trial                one choice: its candidates and derivatives as one program
    positions            the x and F that may be meant
    cuts, degrees        the values that may be products H d: polynomials of one direction
    derivatives          those of F along directions; ``products._compare``, in the folder above, compares with them
    evaluating           draws, and the time limit;  few_walkers  how many;  equal_inputs  draws of tied inputs
    guards               what draws do not show;  shift_invariance  extremes that F does not depend on

Of the folder above, these know ``directions`` alone.
"""
