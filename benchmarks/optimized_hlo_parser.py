"""How the optimised-HLO parser scales: seconds to parse and print modules of growing size, and the fixed point.

    python benchmarks/optimized_hlo_parser.py [FILE]

FILE is optimised HLO text (``fusionlab dump`` writes it); without one the narrow PauliNet is compiled for the CPU.
Larger modules repeat the computations of that text under other names. The bar: 5 MB in at most 20 s, linear in size.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from fusionlab import jax_setup

MEGABYTES = (0.6, 1.25, 2.5, 5.0, 10.0)


def main(arguments: list[str]) -> None:
    """Print one line per size: megabytes, instructions, seconds to parse, megabytes per second, whether stable."""
    jax_setup.load_jax()
    from fusionlab.hlo.optimised.parser import parse_optimized

    text = Path(arguments[0]).read_text() if arguments else _compiled()
    print("     MB  instructions  parse s   MB/s  print-parse-print is a fixed point")
    for size in MEGABYTES:
        grown = _grown(text, round(size * 1e6))
        started = time.perf_counter()
        module = parse_optimized(grown)
        seconds = time.perf_counter() - started
        count = sum(len(computation.instructions) for computation in module.computations.values())
        printed = str(module)
        stable = str(parse_optimized(printed)) == printed
        megabytes = len(grown) / 1e6
        print(f"{megabytes:7.2f}  {count:12,}  {seconds:7.2f}  {megabytes / seconds:5.1f}  {'yes' if stable else 'NO'}")


def _compiled() -> str:
    from fusionlab.codegen.compile import compile_program
    from fusionlab.codegen.targets import load_target
    from fusionlab.hlo.lowering import lower
    from fusionlab.workloads import catalogue

    workload = catalogue.build("paulinet", "LiH", walkers=4, size="tiny")
    return compile_program(lower(workload, "cpu"), load_target("cpu")).optimized_hlo


def _grown(text: str, size: int) -> str:
    """``text`` with its computations repeated under other names until it has about ``size`` characters."""
    first = re.search(r"^(ENTRY )?%", text, re.MULTILINE)
    assert first is not None
    head, body = text[: first.start()], text[first.start() :]
    copies = [body[:size]] if len(body) > size else [body]
    if len(body) > size:  # whole computations only
        copies = [body[: body.rfind("\n}\n", 0, size) + 3]]
    while sum(map(len, copies)) < size and len(body) <= size:
        number = len(copies)
        copies.append(re.sub(r"%([^\s=(){},]+)", rf"%\1.copy{number}", body).replace("ENTRY ", ""))
    return head + "\n".join(copies)


if __name__ == "__main__":
    main(sys.argv[1:])
