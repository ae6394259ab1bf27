"""Why is there a transposition before and after my convolution?"""

from commands import array
from jax import lax, nn

import fusionlab


def channels_first(x, w):
    """Axes in the order that cuDNN takes for float32."""
    return nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")))


def channels_last(x, w):
    """The same image and kernel with channels last."""
    return nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))


def answer():
    """Launches of both, those that only turn axes, and the FLOPs of the convolution."""
    first = fusionlab.launches(channels_first, array(32, 64, 56, 56), array(128, 64, 3, 3))
    last = fusionlab.launches(channels_last, array(32, 56, 56, 64), array(3, 3, 64, 128))
    print(fusionlab.diff(first, last).verdict)
    turned = sum(row.dynamic_launches for row in last.rows if "transpose" in row.name)
    return {"launches": (first.dynamic_launches, last.dynamic_launches), "turned": turned, "flops": first.totals.flops}


if __name__ == "__main__":
    answer()
