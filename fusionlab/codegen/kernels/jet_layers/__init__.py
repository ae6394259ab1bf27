"""A jet layer: a contraction of a jet's stacked rows with weights, and the elementwise ops that follow, as one kernel.

A jet of u is a stack of rows: u, its Laplacian, its derivatives u_k. After the contraction z = u W, an activation s
needs all rows of one walker and electron at once:

    row 0 (value)        s(z_0 + b)
    row 1 (Laplacian)    s' z_1 + s'' sum_k z_k^2
    row k (derivative)   s' z_k

The axes are those of a dot chain (``fusionlab.codegen.kernels.dot_chains``), of which three kinds differ:

- the *stream* is the axis of rows. It is not run through in a loop: all rows are one tile, masked where an op is of an
  interval of them;
- the *columns* are the free axis of the weights, of which an instance has a block;
- the *grid* are all other free axes of the rows, as walkers and electrons.

    instance (walker, electron, columns):  z[rows, columns] = sum over k of u[rows, k] W[k, columns]
                                           the ops that follow, on z; the result is written once

    layer     what a layer is: its contraction, rows, and the ops that may follow (``is_layer``, ``jet_layer``)
    kernel    its Triton kernel, and where three products of TF32 pay

The pass jet-layer-kernels decides what becomes a layer (``passes.jet_layer_kernels``; docs/jet-layers.md).
"""
