"""``python -m fusionlab``: also from a source checkout, without installation."""

import sys

try:
    from fusionlab.cli import main
except ModuleNotFoundError as error:
    from fusionlab.errors import missing_package

    print(f"fusionlab: {missing_package(error)}", file=sys.stderr)
    sys.exit(2)
except KeyboardInterrupt:
    print("fusionlab: interrupted", file=sys.stderr)
    sys.exit(130)

main(prog_name="fusionlab")
