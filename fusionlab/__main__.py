"""``python -m fusionlab``."""

from fusionlab.cli import main

main(prog_name="fusionlab")
