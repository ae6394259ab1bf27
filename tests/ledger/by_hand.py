"""Compiled programs that are made of text."""

from pathlib import Path

from fusionlab.codegen.compile import Compiled, Memory
from fusionlab.codegen.targets import load_target


def text_of(name):
    """The file beside this one, without the comment in its first line."""
    return Path(__file__).with_name(name).read_text().partition("\n")[2]


def compiled_of(hlo, sequence="", names=None, target="a100", *, compile_s=0.0, **others):
    """The record of a compile from XLA's texts; ``names`` maps thunk ids to HLO names."""
    metadata = "".join(
        f'thunk_metadata {{\n  thunk_info {{\n    profile_annotation: "{name}"\n    thunk_id: {id_}\n  }}\n}}\n'
        for id_, name in (names or {}).items()
    )
    memory = Memory(argument_bytes=1, output_bytes=2, temp_bytes=3, alias_bytes=0)
    return Compiled("hand", load_target(target), hlo, sequence, metadata, memory, compile_s, {}, "", **others)
