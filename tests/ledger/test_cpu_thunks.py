"""The thunks of the CPU: XLA's own list, read from the executable, in programs of five kinds and damaged bytes."""

import dataclasses
import logging
import re

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.ledger.cpu_thunks import parse_cpu_thunks
from fusionlab.ledger.ledger import count_launches, launches, thunk_text

SQUARE = jax.ShapeDtypeStruct((16, 16), jnp.float32)

PROGRAMS = {
    "matmul-chain": lambda x: (jnp.tanh(x @ x) @ x).sum(1),
    "scan-rnn": lambda x: lax.scan(lambda h, t: (jnp.tanh(h @ x + t), h), x[0], x),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(16)),
    "sort": lambda x: (jnp.sort(x, 0), lax.top_k(x, 3)),
    "fft": lambda x: jnp.fft.fft(x).real * 2,
    "conditional": lambda x: lax.cond(x[0, 0] > 0, lambda a: a * 2, lambda a: jnp.sin(a) @ a, x),
    "while": lambda x: lax.while_loop(lambda s: jnp.sum(s) < 10, lambda s: s @ s + 1, x),
}
LIBRARY = {
    "matmul-chain": "dot", "scan-rnn": "while", "cholesky": "custom-call", "sort": "sort", "fft": "fft",
    "conditional": "conditional", "while": "while",
}  # fmt: skip
CONTAINERS = ("while", "conditional", "call")


@pytest.fixture(scope="module")
def on_cpu(lowered):
    cpu = load_target("cpu")
    made = {name: compile_program(lowered(function, SQUARE), cpu) for name, function in PROGRAMS.items()}
    return made.__getitem__


def kinds_in(serialized):
    """XLA's thunks, found by another way than the reader: a kind, and after it the message with the name."""
    found = re.finditer(rb"\x0a(.)([a-z][a-z-]{1,30})\x12.\x0a", serialized, re.DOTALL)
    return [kind.decode() for length, kind in (one.groups() for one in found) if length[0] == len(kind)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_sites_are_the_thunks_that_xla_lists(on_cpu, name):
    compiled = on_cpu(name)
    listed = kinds_in(compiled.executable_bytes)
    counts = count_launches(compiled)
    copies = listed.count("copy")
    assert counts.launch_source == "xla thunk sequence"
    assert LIBRARY[name] in listed
    assert counts.static_copies == copies
    assert counts.static_launches == len([kind for kind in listed if kind not in CONTAINERS]) - copies > 0
    assert sorted(one.kind for one in launches(compiled)) == sorted(one for one in listed if one not in CONTAINERS)
    names = {one.name for part in compiled.module.computations.values() for one in part.instructions}
    assert {one.hlo_name for one in launches(compiled)} <= names


def test_a_sort_copies_its_operand_as_the_schedule_does_not_tell(on_cpu):
    by_list, by_schedule = on_cpu("sort"), dataclasses.replace(on_cpu("sort"), executable=None)
    assert (count_launches(by_list).static_copies, count_launches(by_schedule).static_copies) == (1, 0)


def test_bodies_count_times_their_trips_and_branches_by_the_longest(on_cpu):
    assert {one.trip_count for one in launches(on_cpu("scan-rnn")) if one.path} == {0, 16}
    branches = {one.path[0].partition(":")[2]: one.dynamic for one in launches(on_cpu("conditional")) if one.path}
    assert branches == {"branch_0": 1, "branch_1": 0}


def test_a_loop_without_a_count_copies_nothing_to_a_host(on_cpu):
    assert count_launches(on_cpu("while")).unknown_trip_loops == 1
    assert {one.hlo_name.partition(".")[0] for one in launches(on_cpu("while")) if one.is_copy} == {"copy"}


def test_the_list_as_text_shows_what_is_inside_what(on_cpu):
    lines = thunk_text(on_cpu("scan-rnn")).splitlines()
    loop = next(at for at, line in enumerate(lines) if line.startswith("while "))
    assert lines[loop + 1] == "  condition:"
    assert lines[loop + 2].startswith("    kernel ")


DAMAGES = {
    "cut": lambda whole: whole[: len(whole) // 2],
    "empty": lambda whole: b"",
    "other-length": lambda whole: b"\x07" + whole[7:],
}


@pytest.mark.parametrize("damaged", DAMAGES.values(), ids=DAMAGES)
def test_bytes_of_another_form_are_no_list_and_the_schedule_is_counted(on_cpu, damaged, caplog):
    compiled = dataclasses.replace(on_cpu("sort"))
    broken = damaged(compiled.executable_bytes)
    with pytest.raises(ValueError, match=r"message|integer|utf-8"):
        parse_cpu_thunks(broken)
    vars(compiled)["executable_bytes"] = broken
    with caplog.at_level(logging.WARNING):
        assert count_launches(compiled).launch_source == "scheduled hlo"
    assert "counting launches from the scheduled HLO" in caplog.text
