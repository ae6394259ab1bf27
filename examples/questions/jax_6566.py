"""jax 6566: jit changes a sum on the CPU, which is right on a GPU. Which ops share a kernel, and do results differ?"""

import numpy as np
from commands import array

import fusionlab
from fusionlab.errors import NotEquivalentError
from fusionlab.testing import assert_equivalent


def masked(mask, scores):
    """A mask of -1e30 added to scores, less the maximum."""
    scores = scores + -1e30 * (1.0 - mask)
    return scores - scores.max()


def subtracted(mask, scores):
    """The same with a subtraction."""
    scores = scores - 1e30 * (1.0 - mask)
    return scores - scores.max()


def answer():
    """Kernels in which the compiler may reorder the addition, and whether both forms agree as compiled for the CPU."""
    found = fusionlab.launches(masked, array(), array(2), target="cpu")
    together = [row.name for row in found.rows if any("/add" in part for part in row.parts)]
    try:
        assert_equivalent(masked, subtracted, (np.float32(1), np.float32([0.7, 0.5])))
        same = True
    except NotEquivalentError:
        same = False
    says = "equal" if same else "different"
    print(f"the addition is in {' and '.join(together)}; compiled for the CPU, both forms are {says}")
    return {"kernels": len(together), "equal": same}


if __name__ == "__main__":
    answer()
