"""Memory by buffer: XLA's totals, known arrays with their lines, shared slots, loop state, copies and their causes."""

import inspect
import itertools
import json
import re

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.errors import InputError
from fusionlab.hlo.optimised.buffers import TEMP, parse_buffers
from fusionlab.ledger.buffer_copies import buffer_copies
from fusionlab.ledger.ledger import launches
from fusionlab.ledger.memory import SCHEMA, TABLE, WORKSPACE, memory_record
from fusionlab.ledger.origins import Origins
from fusionlab.testing.lowered import program_of
from tests.ledger.by_hand import compiled_of
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = [pytest.mark.versions] if jax.__version_info__ >= (0, 10) else []  # before, XLA writes no live ranges

MIB = 2**20
TARGETS = [
    pytest.param("a100", marks=needs_the_cuda_plugin),
    pytest.param("cpu"),
]


def shape(*dims, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def outer(x, y, w):
    with jax.named_scope("outer"):
        a = x[:, None] * y[None, :]
    return jnp.tanh(a @ w)


def kept(x, y, w):
    with jax.named_scope("outer"):
        a = x[:, None] * y[None, :]
    return jnp.sum(jnp.tanh(a @ w) @ a)


def chain(x, w):
    for _ in range(4):
        x = jnp.sin(x @ w)
    return x


def looped(x, w):
    with jax.named_scope("start"):
        s = jnp.cos(x @ w)
    return lax.fori_loop(0, 5, lambda _, s: jnp.tanh(s @ w), s) @ w


def solved(a, b):
    return lax.linalg.triangular_solve(jnp.tanh(a @ a), b, left_side=True, lower=True) @ a


def scanned(ws, x):
    return lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, ws)[0]


def scattered(x, i):
    zeros = lax.optimization_barrier(jnp.zeros((512, 64)))
    return zeros.at[i].add(jnp.sin(x)) @ x.T + zeros.at[i].add(jnp.cos(x)) @ x.T


def branched(p, x):
    return lax.cond(p, lambda x: jnp.sin(x @ x) @ x, lambda x: jnp.cos(x), x)


def simple(x):
    return jnp.sin(x) * 2


PROGRAMS = {
    "outer": (outer, (shape(1024), shape(1024), shape(1024, 1024))),
    "kept": (kept, (shape(1024), shape(1024), shape(1024, 1024))),
    "chain": (chain, (shape(512, 512), shape(512, 512))),
    "looped": (looped, (shape(256, 256), shape(256, 256))),
    "solved": (solved, (shape(256, 256), shape(256, 256))),
    "scanned": (scanned, (shape(4, 256, 256), shape(512, 256))),
    "scattered": (scattered, (shape(512, 64), shape(512, dtype=jnp.int32))),
    "branched": (branched, (shape(dtype=jnp.bool_), shape(256, 256))),
    "simple": (simple, (shape(64),)),
}


@pytest.fixture(scope="module")
def compiled():
    """``compiled(name, target)``, each compiled once."""
    made = {}

    def compile_once(name, target):
        if (name, target) not in made:
            function, arguments = PROGRAMS[name]
            chosen = load_target(target)
            program = program_of(function, arguments, chosen.kind)
            made[name, target] = compile_program(program, chosen, dump=chosen.kind == "cpu")
        return made[name, target]

    return compile_once


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return f"test_memory.py:{first + next(at for at, line in enumerate(lines) if text in line)}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_sums_are_xlas(name, target, compiled):
    made = compiled(name, target)
    found = memory_record(made)
    assert found.temp_bytes == made.memory.temp_bytes
    assert parse_buffers(made.buffer_assignment, made.live_ranges).bytes_of(TEMP) == found.temp_bytes
    peak = found.peak
    assert sum(one.bytes for one in peak.buffers) == peak.held_bytes == max(found.held_by_step)
    assert peak.held_bytes + peak.free_bytes == found.temp_bytes
    assert peak.free_bytes >= 0
    assert len(found.held_by_step) == found.steps + 1
    assert (found.argument_bytes, found.output_bytes) == (made.memory.argument_bytes, made.memory.output_bytes)
    assert all(one.born_step <= peak.step <= one.died_step for one in peak.buffers)
    assert json.loads(json.dumps(found.to_json()))["schema"] == SCHEMA


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_bytes_held_are_those_of_the_places_that_are_in_use(name, target, compiled):
    made = compiled(name, target)
    assignment = parse_buffers(made.buffer_assignment, made.live_ranges)
    values = [(at, one) for at in assignment.allocations if at.role == TEMP for one in at.values]
    held = []
    for step in range(len(assignment.schedule) + 1):
        alive = [(at.number, one.offset, one.offset + one.bytes) for at, one in values if one.born <= step <= one.died]
        total, end = 0, (-1, 0)
        for number, start, stop in sorted(alive):
            start = max(start, end[1]) if number == end[0] else start
            total += max(0, stop - start)
            end = max(end, (number, stop))
        held.append(total)
    assert memory_record(made).held_by_step == tuple(held)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["outer", "kept"])
def test_a_large_array_is_named_with_its_line(name, target, compiled):
    found = memory_record(compiled(name, target))
    every = [*found.peak.buffers, *found.peak.in_outputs, *(one for slot in found.slots for one in slot.buffers)]
    (product,) = {one for one in every if one.scope == "outer"}
    assert (product.bytes, product.op, product.transform) == (4 * MIB, "mul", "primal")
    assert product.source == line_of(PROGRAMS[name][0], "x[:, None] * y[None, :]")
    assert product.shape.startswith("f32[1024,1024]")
    assert product.born_launch == 1


@needs_the_cuda_plugin
def test_the_peak_is_the_product_of_a_matrix_that_was_formed(compiled):
    found = memory_record(compiled("outer", "a100"))
    assert found.peak.source == line_of(outer, "jnp.tanh(a @ w)")
    assert (found.peak.launch, found.launches) == (2, 3)
    (product,) = found.peak.in_outputs  # the product lies where the result of tanh comes to lie
    assert (product.scope, product.op, product.bytes) == ("outer", "mul", 4 * MIB)
    workspace = next(one for one in found.peak.buffers if one.what == WORKSPACE)
    assert (workspace.bytes, workspace.op, workspace.source) == (4 * MIB, "dot_general", found.peak.source)
    assert found.held_by("source") == {found.peak.source: found.peak.held_bytes}


@pytest.mark.parametrize("target", TARGETS)
def test_an_array_that_is_read_late_is_held_at_the_peak(target, compiled):
    found = memory_record(compiled("kept", target))
    (product,) = [one for one in found.peak.buffers if one.scope == "outer"]
    assert product.bytes == 4 * MIB
    assert product.born_launch < found.peak.launch <= product.died_launch
    assert found.held_by("scope")["outer"] == 4 * MIB
    assert found.held_by("source")[line_of(kept, "x[:, None]")] == 4 * MIB


@pytest.mark.parametrize("target", TARGETS)
def test_arrays_of_a_chain_share_a_slot_at_different_times(target, compiled):
    found = memory_record(compiled("chain", target))
    slots = [[one for one in slot.buffers if one.bytes == MIB] for slot in found.slots]
    largest = max(slots, key=len)
    assert len(largest) >= 2
    assert len({one.producer for one in largest}) == len(largest)
    for slot in slots:
        for before, after in itertools.pairwise(slot):  # an op may write where its operand is
            assert before.died_step <= after.born_step


@pytest.mark.parametrize("target", TARGETS)
def test_the_state_of_a_loop_is_one_buffer_from_its_start(target, compiled):
    found = memory_record(compiled("looped", target))
    every = {one for slot in found.slots for one in slot.buffers} | set(found.peak.buffers)
    start = next(one for one in every if one.scope == "start" and one.op == "cos")
    assert start.passed_on_as
    assert start.source == line_of(looped, "jnp.cos(x @ w)")
    made = memory_record(compiled("looped", target))
    assert start.died_launch > start.born_launch
    assert all(one.what in ("array", TABLE, WORKSPACE) for one in made.peak.buffers)


@needs_the_cuda_plugin
def test_copies_have_a_cause(compiled):
    copies = {one.name: one for one in memory_record(compiled("solved", "a100")).copies}
    solve = next(one for one in copies.values() if one.op.startswith("triangular_solve"))
    assert solve.bytes == 256 * 256 * 4
    assert solve.cause == "it solves in place, in a copy of the right-hand sides"
    assert solve.source == line_of(solved, "triangular_solve")
    causes = {(one.bytes, one.runs): one.cause for one in memory_record(compiled("scanned", "a100")).copies}
    if jax.__version_info__ < (0, 11):  # from then on there is no such copy
        assert causes[256 * 256 * 4, 4] == "a slice of the loop's state"
    assert re.fullmatch(r"state of while\S*, which overwrites it \(from argument x\)", causes[512 * 256 * 4, 1])
    assert re.fullmatch(r"state of while\S*, which overwrites it \(from constant \S+\)", causes[4, 1])


@needs_the_cuda_plugin
def test_an_update_in_place_copies_what_is_read_again(compiled):
    causes = [one.cause for one in memory_record(compiled("scattered", "a100")).copies if one.bytes == 512 * 64 * 4]
    assert any(re.fullmatch(r"\S*scatter\S* updates it in place \(from \S+\)", cause) for cause in causes)


@pytest.mark.parametrize("target", TARGETS)
def test_a_donated_argument_is_not_copied(target):
    chosen = load_target(target)
    copied = []
    for donated in ((), 1):
        traced = jax.jit(scanned, donate_argnums=donated).trace(*PROGRAMS["scanned"][1])
        made = compile_program(program_of(traced, (), chosen.kind), chosen, dump=chosen.kind == "cpu")
        copied.append([one for one in memory_record(made).copies if one.bytes == 512 * 256 * 4])
    assert [len(copies) for copies in copied] == [1, 0]


ASSIGNMENT = """BufferAssignment:
allocation 0: size 8, parameter 0, shape |f32[2,1]| at ShapeIndex {0,1}:
 value: <1 x @0> (size=8,offset=0): f32[2,1]{1,0}
allocation 1: size 300, color 5, preallocated-temp:
 value: <2 far @5> (size=300,offset=0): f32[75]{0}
allocation 2: size 24, preallocated-temp:
 value: <3 first @0> (size=8,offset=0): f32[2]{0}
 value: <4 loop{0} (phi) @0> (size=8,offset=0): f32[2]{0}
 value: <5 second @0> (size=8,offset=8): f32[2]{0}
 value: <6 in_place @0> (size=8,offset=8): f32[2]{0}
 value: <7 later @0> (size=8,offset=0): f32[2]{0}
allocation 3: size 4, thread-local:
 value: <8 inside @0> (size=4,offset=0): f32[]

Total bytes used: 336 (336B)
"""
RANGES = """HloLiveRange (max 6):
  InstructionSequence:
    0:x
    1:first
    2:second
    3:in_place
    4:loop
    5:later
  BufferLiveRange:
    x{}:0-6
    far{}:1-2
    first{}:1-3
    second{}:2-3
    in_place{}:3-4
    loop{0}:3-4
    later{}:5-6
  Live ranges at 3 (peak):
    first{}: 8 bytes (cumulative: 8 bytes)
"""
HLO = """HloModule hand, is_scheduled=true

ENTRY %main (x: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0)
  ROOT %first = f32[2]{0} copy(%x), metadata={op_name="jit(f)/scope/mul" source_file="/a/b.py" source_line=7}
}
"""


def by_hand(assignment=ASSIGNMENT, ranges=RANGES):
    return memory_record(compiled_of(HLO, buffer_assignment=assignment.partition("\n\n")[0], live_ranges=ranges))


def test_an_array_is_counted_once_where_it_lies():
    found = by_hand()
    assert found.held_by_step == (0, 8, 16, 16, 16, 8, 8)
    assert (found.peak.step, [one.name for one in found.peak.buffers]) == (2, ["first", "second"])
    (slot_of_first, slot_of_second) = found.slots
    assert [one.name for one in slot_of_first.buffers] == ["first", "later"]
    assert slot_of_first.buffers[0].passed_on_as == ("loop{0}",)
    assert (slot_of_first.buffers[0].died_step, slot_of_first.buffers[0].place) == (4, "scope/mul, b.py:7")
    assert [one.name for one in slot_of_second.buffers] == ["second", "in_place"]


def test_memory_on_the_host_is_not_the_devices():
    found = parse_buffers(ASSIGNMENT.partition("\n\n")[0], RANGES)
    assert found.bytes_of(TEMP) == 24
    assert [(one.role, one.memory_space) for one in found.allocations] == [
        ("argument", 0), ("temp", 5), ("temp", 0), ("kernel", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("assignment", "ranges", "message"),
    [
        ("", RANGES, "XLA wrote no buffer assignment"),
        (ASSIGNMENT, "", "XLA wrote no buffer assignment"),
        (ASSIGNMENT.replace("<3 first @0>", "first"), RANGES, r"buffer assignment, line 7: .*form that is not known"),
        (ASSIGNMENT, RANGES.replace("    1:first\n", ""), "live ranges, line 4: '2:second' is in a form"),
        (ASSIGNMENT, RANGES.replace("1-3", "1..3"), "live ranges, line 12"),
    ],
)
def test_what_xla_writes_in_another_form_is_said(assignment, ranges, message):
    with pytest.raises(InputError, match=message):
        by_hand(assignment, ranges)


DONATED = """HloModule step, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias), {2}: (0, {}, may-alias) }

ENTRY %main {
  %batch = f32[8]{0} parameter(0)
  %state.1 = f32[8]{0} parameter(1), metadata={op_name="state"}
  %turned = f32[8]{0} reverse(%state.1), dimensions={0}
  %copy.1 = f32[8]{0} copy(%turned)
  %copy.2 = f32[8]{0} copy(%turned)
  %copy.3 = f32[8]{0} copy(%turned)
  ROOT %tuple = (f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(%copy.1, %copy.2, %copy.3)
}
"""


def test_a_copy_into_a_donated_argument_names_it():
    made = compiled_of(DONATED)
    found = buffer_copies(made, Origins(made.module), launches(made))
    assert {one.name: one.cause for one in found} == {
        "copy.1": "into donated argument state (from turned)",
        "copy.2": "a result of the program (from turned)",
        "copy.3": "into donated argument batch (from turned)",
    }
