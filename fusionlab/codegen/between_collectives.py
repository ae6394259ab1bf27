"""What stands between the collectives of a program of several devices, as functions that are rewritten by themselves.

    sdy.manual_computation(%x) {                    sdy.manual_computation(%x) {
      %e = ... %x ...                                 %e = func.call @between_collectives_0(%x)
      %s = stablehlo.all_reduce(%e)         -->       %s = stablehlo.all_reduce(%e)
      %r = ... %e, %s ...                             %r = func.call @between_collectives_1(%e, %s)
      sdy.return %r                                   sdy.return %r
    }                                               }

The operations of one level (``collective_levels``) are one function, which holds the constants that it reads;
collectives stay as they are. Loops, branches and functions with collectives inside are divided in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import func

from fusionlab.codegen.collective_levels import Traits, levels, worth_and_rest
from fusionlab.codegen.raising.splice import copy_here, import_functions
from fusionlab.hlo import ops
from fusionlab.hlo.loops import has_effect_inside
from fusionlab.hlo.meshes import drop_open_constraints
from fusionlab.hlo.ops import MANUAL
from fusionlab.hlo.program import Program, has_sharding, rewritten
from fusionlab.hlo.view import callee_of, functions_of, inner_operations, public_function, public_functions

MARK = "between_collectives"
"""Attribute of the functions that ``divided`` makes, a boolean (XLA before JAX 0.9 takes no unit), and how their names
begin."""

_LOOPS = frozenset((ops.WHILE.name,))
_WORTH = _LOOPS | {op.name for op in (ops.CASE, ops.IF, ops.DOT, ops.DOT_GENERAL, ops.CONVOLUTION)}


def divided(program: Program) -> Program:
    """``program`` with its functions between collectives; itself where it has them already, or has none."""
    module = program.parse()
    if _marked(module):
        return program
    with module.context, ir.Location.unknown():
        drop_open_constraints(module)
        made = _Division(module).run()
        module.operation.verify()
    return rewritten(program, module) if made else program


def parts(program: Program) -> dict[str, Program]:
    """The functions of a ``divided`` program by name, each a program of one device."""
    found = {}
    for name in _marked(program.parse()):
        module = program.parse()
        with module.context:
            for top in list(module.body.operations):
                if top.operation.name != "func.func":
                    top.operation.erase()
            for public in public_functions(module):
                public.operation.erase()
            function = functions_of(module)[name]
            del function.operation.attributes[MARK]
            ir.SymbolTable.set_visibility(function, "public")
            ir.SymbolTable.set_symbol_name(function, "main")
            for of_devices in ("mhlo.num_partitions", "mhlo.num_replicas"):
                if of_devices in module.operation.attributes:
                    del module.operation.attributes[of_devices]
            _drop_unused(module)
        platform = None if program.platform == "any" else program.platform
        found[name] = Program.from_module(
            module, name=f"{program.name}_{name}", provenance=program.provenance, platform=platform
        )
    return found


def with_parts(program: Program, changed: Mapping[str, Program]) -> Program:
    """A ``divided`` program with other functions in place of those of the names in ``changed``."""
    module = program.parse()
    with module.context, ir.Location.unknown():
        _declare(module, changed)
        for name, part in changed.items():
            functions_of(module)[name].operation.erase()
            entry, _ = import_functions(module.operation, ir.Module.parse(part.bytecode), name)
            entry.attributes[MARK] = ir.BoolAttr.get(True)
        module.operation.verify()
    return rewritten(program, module)


def around_parts(program: Program) -> str:
    """The text of a ``divided`` program without the bodies of its functions: what is left as it is."""
    module = program.parse()
    with module.context, ir.Location.unknown():
        _declare(module, _marked(module))
    return str(module)


def _declare(module: ir.Module, names: Iterable[str]) -> None:
    """Remove the bodies of these functions, which come last then, and the functions that these alone call."""
    for name in sorted(names):
        function = functions_of(module)[name]
        func.FuncOp(name, function.type, visibility="private", ip=ir.InsertionPoint(module.body))
        function.operation.erase()
    _drop_unused(module)


def _marked(module: ir.Module) -> list[str]:
    return [name for name, function in functions_of(module).items() if MARK in function.operation.attributes]


def _drop_unused(module: ir.Module) -> None:
    passmanager.PassManager.parse("builtin.module(symbol-dce)").run(module.operation)


class _Division:
    """The division of ``module``, in place."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.functions = {name: function.operation for name, function in functions_of(module).items()}
        called = (_callee(inner) for inner in inner_operations(module.operation) if inner.name in ops.CALLEES)
        self.calls = Counter(called)
        self.outside: dict[Any, Any] = {}
        """Arguments of regions, with the value outside that each is."""
        self._names: dict[str, frozenset[str]] = {}
        self._crossing: dict[str, bool] = {}
        self._constant: dict[Any, bool] = {}
        self._done: set[Any] = set()
        self.made = 0
        self._traits = Traits(
            reads=_reads,
            results=lambda operation: operation.results,
            crosses=self._crosses,
            names=self._names_in,
            worth=_WORTH,
            loops=_LOOPS,
            sums_first_axis=self._sums_first_axis,
            is_constant=lambda operation: all(map(self._is_constant, operation.results)),
        )

    def run(self) -> int:
        """The number of functions that were made."""
        mapped = [inner for inner in inner_operations(self.module.operation) if inner.name == MANUAL]
        for operation in mapped:
            if operation not in self._done:  # it may be inside another one
                self._within(operation)
        if not mapped:  # as JAX lowers a shard_map over one device
            self._divide(public_function(self.module).body.blocks[0])
        return self.made

    def _within(self, operation: Any) -> None:
        """Divide the regions, or the callee, of an operation with collectives inside."""
        if operation.name in ops.CALLEES:
            name = _callee(operation)
            block = self.functions[name].regions[0].blocks[0]
            if self.calls[name] == 1:
                self._stand_for(zip(block.arguments, operation.operands, strict=True))
            if name not in self._done:
                self._done.add(name)
                self._divide(block)
            return
        self._done.add(operation)
        for number, region in enumerate(operation.regions):
            [block] = region.blocks
            given = list(zip(block.arguments, operation.operands, strict=False))  # branches have no arguments
            if operation.name == MANUAL:
                self._stand_for((inside, outside) for inside, outside in given if inside.type == outside.type)
            elif operation.name == ops.WHILE.name and number == 1:
                *_, last = block.operations
                pairs = zip(given, last.operation.operands, strict=True)
                self._stand_for((inside, outside) for (inside, outside), back in pairs if inside == back)
            self._divide(block)

    def _stand_for(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Note which arguments of a block are constants outside, of pairs (argument, the value outside)."""
        self.outside.update((inside, outside) for inside, outside in pairs if self._is_constant(outside))

    def _divide(self, block: Any) -> None:
        *operations, last = [wrapped.operation for wrapped in block.operations]
        if any(has_effect_inside(operation, self.functions) for operation in operations):
            return  # nothing may change places with it
        divided_by_level = levels(operations, self._traits)
        for _, crossing in divided_by_level:
            for operation in crossing:
                if operation.name in ops.CALLEES or operation.name in _WITH_REGIONS:
                    self._within(operation)
        later = [[*between, *crossing] for between, crossing in divided_by_level]
        for at, (between, crossing) in enumerate(divided_by_level):
            own, rest = worth_and_rest(between, self._traits)
            others = [*rest, *crossing, *(other for each in later[at + 1 :] for other in each), last]
            outlined = self._outline(own, {value for other in others for value in _reads(other)}, last)
            for operation in (*(rest if outlined else between), *crossing):
                operation.move_before(last)

    def _outline(self, own: Sequence[Any], wanted: set[Any], last: Any) -> bool:
        """Replace ``own`` by a call of a function of them, before ``last``; of their results others want ``wanted``.

        False where nothing is changed: no result is wanted, or a value that passes is not a tensor.
        """
        inside = {value for operation in own for value in operation.results}
        read = dict.fromkeys(value for operation in own for value in _reads(operation))
        given = [value for value in read if value not in inside and not self._is_constant(value)]
        results = [value for operation in own for value in operation.results if value in wanted]
        if not results or not all(isinstance(value.type, ir.RankedTensorType) for value in (*given, *results)):
            return False
        name = next(name for n in range(self.made, 2**30) if (name := f"{MARK}_{n}") not in self.functions)
        type_ = ir.FunctionType.get([value.type for value in given], [value.type for value in results])
        function = func.FuncOp(name, type_, visibility="private", ip=ir.InsertionPoint(self.module.body))
        function.operation.attributes[MARK] = ir.BoolAttr.get(True)
        entry = function.add_entry_block()
        known = dict(zip(given, entry.arguments, strict=True))
        with ir.InsertionPoint(entry):
            for operation in own:
                for value in _reads(operation):
                    self._copy_constant(value, known)
                copy_here(operation, known)
            func.ReturnOp([known[value] for value in results])
        call = func.CallOp([value.type for value in results], name, given, ip=ir.InsertionPoint(last))
        for old, new in zip(results, call.results, strict=True):
            old.replace_all_uses_with(new)
        for operation in reversed(own):
            operation.erase()
        self._constant.clear()  # of values, some of which are no more
        self.functions[name] = function.operation
        self.made += 1
        return True

    def _copy_constant(self, value: Any, known: dict[Any, Any]) -> None:
        if value in known or not self._is_constant(value):
            return
        if value in self.outside:
            self._copy_constant(self.outside[value], known)
            known[value] = known[self.outside[value]]
            return
        maker = _maker(value)
        for operand in maker.operands:
            self._copy_constant(operand, known)
        copy_here(maker, known)

    def _is_constant(self, value: Any) -> bool:
        """True if ``value`` follows from constants alone, by operations without regions."""
        if value not in self._constant:
            maker = _maker(value)
            if maker is None:
                return value in self.outside
            plain = not len(maker.regions) and maker.name not in (*ops.CALLEES, *_WORTH) and not self._crosses(maker)
            source = ops.op_of(maker.name).source or bool(len(maker.operands))
            quiet = not has_effect_inside(maker, self.functions)
            self._constant[value] = plain and source and quiet and all(map(self._is_constant, maker.operands))
        return self._constant[value]

    def _crosses(self, operation: Any) -> bool:
        """True of what reads other devices, the mesh or its own place in it, or has such a part inside."""
        if operation.name in ops.CALLEES:
            name = _callee(operation)
            if name not in self._crossing:
                callee = self.functions[name]
                self._crossing[name] = any(map(self._crosses_itself, (callee, *inner_operations(callee))))
            return self._crossing[name]
        return any(map(self._crosses_itself, (operation, *inner_operations(operation))))

    def _crosses_itself(self, operation: Any) -> bool:
        if operation.name in ops.CALLEES:
            return self._crosses(operation)
        return operation.name in ops.ACROSS or has_sharding(operation)

    def _names_in(self, operation: Any) -> frozenset[str]:
        """The names of ``operation`` and of all that it runs."""
        if operation.name in ops.CALLEES:
            name = _callee(operation)
            if name not in self._names:
                inner = inner_operations(self.functions[name])
                self._names[name] = frozenset().union(*map(self._names_in, inner))
            return self._names[name]
        found = {operation.name}
        for inner in inner_operations(operation):
            found |= self._names_in(inner) if inner.name in ops.CALLEES else {inner.name}
        return frozenset(found)

    def _sums_first_axis(self, operation: Any) -> bool:
        inside = [operation, *inner_operations(operation)]
        if operation.name in ops.CALLEES:
            inside += inner_operations(self.functions[_callee(operation)])
        return any(
            inner.name == ops.REDUCE.name and list(inner.attributes["dimensions"]) == [0] for inner in inside
        ) or any(inner.name in ops.CALLEES and inner != operation and self._sums_first_axis(inner) for inner in inside)


_WITH_REGIONS = (MANUAL, ops.WHILE.name, ops.CASE.name, ops.IF.name)


def _callee(call: Any) -> str:
    name = callee_of(call)
    assert name is not None
    return name


def _maker(value: Any) -> Any:
    """The operation that produces ``value``; None for an argument."""
    owner = getattr(value.owner, "operation", value.owner)
    return None if isinstance(owner, ir.Block) else owner


def _reads(operation: Any) -> list[Any]:
    """The values that ``operation`` reads: its operands, and those from outside that its regions read."""
    inner = list(inner_operations(operation))
    inside = {value for one in inner for value in one.results}
    for one in (operation, *inner):
        inside.update(argument for region in one.regions for block in region.blocks for argument in block.arguments)
    captured = [value for one in inner for value in one.operands if value not in inside]
    return list(dict.fromkeys((*operation.operands, *captured)))
