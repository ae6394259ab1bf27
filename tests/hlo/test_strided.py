"""Views: where the elements of a sliced, transposed, broadcast or reshaped value stand in what it was made from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.strided import Axis, StridedView, run_on
from fusionlab.hlo.view import view_of

X = np.arange(4 * 6 * 5, dtype="f4").reshape(4, 6, 5)
FUNCTIONS = {
    "slice": lambda x: jax.lax.slice(x, (1, 0, 2), (4, 6, 5), (2, 3, 1)),
    "transpose": lambda x: x.transpose(2, 0, 1),
    "broadcast": lambda x: jax.lax.broadcast_in_dim(x, (4, 3, 6, 5), (0, 2, 3)),
    "split": lambda x: x.reshape(4, 2, 3, 5),
    "repeat": lambda x: jnp.tile(x[:, :1, :], (1, 4, 1)),
    "split-slice": lambda x: x[:, 1:5].reshape(4, 2, 2, 5)[:, :, 1],
    "merge-transposed": lambda x: x.transpose(1, 0, 2).reshape(24, 5),
    "itself": lambda x: x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elements_are_where_the_view_says(name, lowered):
    module = lowered(FUNCTIONS[name], X).parse()  # held: a function without ops does not hold it
    flat = view_of(module)
    view = StridedView.of(flat.returns[0])
    wanted = np.asarray(FUNCTIONS[name](X))
    if view.base is not flat.arguments[0]:
        assert name == "merge-transposed"
        assert view.strides == (5, 1)
        return
    at = view.offset + sum(i * s for i, s in zip(np.indices(view.shape), view.strides, strict=True))
    np.testing.assert_array_equal(X.ravel()[at], wanted)


@pytest.mark.parametrize(
    ("axes", "joined"),
    [
        ([Axis(3, (20,)), Axis(5, (4,))], [Axis(15, (4,))]),
        ([Axis(3, (20, 5)), Axis(5, (4, 2))], [Axis(3, (20, 5)), Axis(5, (4, 2))]),
        ([Axis(3, (8,)), Axis(1, (7,)), Axis(2, (4,))], [Axis(6, (4,))]),
        ([Axis(3, (0,)), Axis(5, (0,))], [Axis(15, (0,))]),
        ([Axis(1, (9,))], []),
    ],
)
def test_axes_that_run_on_become_one(axes, joined):
    assert list(run_on(axes)) == joined
