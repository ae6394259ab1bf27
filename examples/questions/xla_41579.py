"""xla 41579: a * x + b * x rounds differently under jit. Are product and sum in one kernel, where they may contract?"""

from commands import array
from jax import lax

import fusionlab


def together(a, b, x):
    """Cancels exactly if both products are rounded alike."""
    return a * x + b * x


def apart(a, b, x):
    """The same with the products rounded first: kernels of their own."""
    left, right = lax.optimization_barrier((a * x, b * x))
    return left + right


def answer():
    """Launches of both; the ops that share the first's kernel."""
    found = fusionlab.diff(together, apart, array(8), array(8), array(8))
    print(found.verdict)
    row = fusionlab.launches(together, array(8), array(8), array(8)).rows[0]
    totals = found.to_dict()["totals"]["launches"]
    return {
        "launches": (totals["before"], totals["after"]),
        "together": [part.split()[0].rpartition("/")[2] for part in row.parts],
    }


if __name__ == "__main__":
    answer()
