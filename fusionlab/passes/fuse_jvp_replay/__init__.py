"""The pass fuse-jvp-replay: a trace of Hessian-vector products is replaced by the forward Laplacian of its function.

``recognise`` finds loops and sums that may be such a trace, ``candidates`` the values that may be differentiated,
``identify`` decides by exact evaluation (with ``guards`` and ``equal_inputs``), ``entry``, ``region_views`` and
``rewrite`` write the new program, and ``choose`` is the pass. collapse-replay, sparsify-directions and transpose-replay
share all but the last.
"""
