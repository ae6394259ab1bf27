"""The views of the bytes held at the peak, apart from ``memory``, so that the command's help loads no compiler."""

VIEWS_OF_MEMORY = ("scope", "source", "op")
