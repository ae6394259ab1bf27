"""The pass fuse-jvp-replay: a sum over directions is replaced by the forward Laplacian of its function.

    T(d) = H_F(x) d;  y = tail(T)      -->      y = tail(0) + sum_k a_k d^2 F / d x_k^2

Five steps, each in a module of its name:

    directions   the unit vectors of the program, made of constants and counters
    products     the values T = H d that they are pushed to, and the value F of which H is the Hessian (one test)
    tail         what follows T is affine in it: the weights of the second derivatives
    decide       these three together: which sums may be replaced
    emit         the function with one forward Laplacian in their place

What they ask: ``positions`` (which x and F are tried), ``degrees`` (what is affine), ``targets`` (the values computed
of products), ``guards``, ``ties``, ``equal_inputs``, ``shift_invariance`` and ``singularity`` (what draws do not show),
and ``second_derivatives`` (all of them by one adjoint). ``rewrite`` applies the steps to a program and its regions
(``region_views``), for collapse-replay, sparsify-directions and transpose-replay; ``choose`` is the pass.
"""
