"""The pass fuse-jvp-replay: a trace of Hessian-vector products is replaced by the forward Laplacian of its function.

Five steps, each in a module of its name:

    directions   the unit vectors of the program, made of constants and counters
    products     the values T = H d that they are pushed to, and the value F of which H is the Hessian (one test)
    tail         what follows T is affine in it: the weights of the second derivatives
    decide       these three, with ``guards``, ``equal_inputs`` and ``singularity``: which sums may be replaced
    emit         the function with one forward Laplacian in their place

``rewrite`` applies them to a program and its regions (``region_views``) where ``identify``, with ``recognise``,
``candidates`` and ``combinations``, does not find a sum of the usual forms, which ``entry`` writes, if the switch
``rewrite.ASKS_FOR_PRODUCTS`` is on. ``choose`` is the pass; collapse-replay, sparsify-directions and transpose-replay
share all but that.
"""
