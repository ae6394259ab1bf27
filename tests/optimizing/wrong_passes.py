"""Passes with a bug, and a function optimised by one."""

from dataclasses import dataclass
from typing import ClassVar

from fusionlab.hlo.program import Program
from fusionlab.optimizing.optimize import Optimized
from fusionlab.optimizing.rewriting import Policy
from fusionlab.passes.interface import Applied, Pass, Result
from tests.optimizing.networks import repeated


@dataclass(frozen=True)
class SineToCosine(Pass):
    """A wrong rewrite: sin becomes cos."""

    name: ClassVar[str] = "sine-to-cosine"

    def run(self, program, setting):
        text = program.text.replace("stablehlo.sine", "stablehlo.cosine")
        wrong = Program(program.name, text.encode(), program.platform, program.provenance)
        return Result(wrong, (Applied(self.name, "made it wrong", "", self.name),))


@dataclass(frozen=True)
class Broken(Pass):
    """A pass with a bug."""

    name: ClassVar[str] = "broken"

    def run(self, program, setting):
        raise ZeroDivisionError("a bug")


def made_by(pass_, function=repeated, **policy):
    return Optimized(function, Policy((pass_,), **policy), {})
