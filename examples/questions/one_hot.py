"""Is the one-hot array of a cross entropy ever in memory?"""

import jax
import jax.numpy as jnp
from commands import array

import fusionlab

BATCH, WORDS = 4096, 50257


def cross_entropy(logits, labels):
    """Written with a one-hot array of 785 MiB."""
    return -(jax.nn.one_hot(labels, WORDS) * jax.nn.log_softmax(logits)).sum(-1).mean()


def answer():
    """Temp memory beside the bytes of the array."""
    found = fusionlab.memory(jax.value_and_grad(cross_entropy), array(BATCH, WORDS), array(BATCH, dtype=jnp.int32))
    print(found.verdict)
    return {"temp": found.temp_bytes, "one-hot": BATCH * WORDS * 4}


if __name__ == "__main__":
    answer()
