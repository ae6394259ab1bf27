"""The worst walker as a file: the same arrays come back, and nothing else is read as one."""

import pickle
import zipfile

import jax
import numpy as np
import pytest

from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.samples import require_fitting
from fusionlab.errors import InputError

ARRAYS = (
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array(3, np.int32),
    np.array([True, False]),
    np.asarray(jax.numpy.arange(4, dtype="bfloat16")),
    np.ones((0, 2), np.complex64),
)
FOUND = Counterexample("seed 2", ARRAYS, 1, (3,), 1.5, float("nan"), float("inf"), "fusionlab check a.mlir b.mlir")


def test_it_comes_back(tmp_path):
    FOUND.save(tmp_path / "worst.npz")
    back = Counterexample.load(tmp_path / "worst.npz")
    for ours, theirs in zip(back.arrays, ARRAYS, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)
    assert (back.label, back.output, back.index, back.command) == ("seed 2", 1, (3,), FOUND.command)
    assert back.original == 1.5
    assert np.isnan(back.rewritten)
    assert back.truth == np.inf


class Evil:
    def __reduce__(self):
        return (open, ("executed", "w"))


def zipped(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("facts.npy", b"not an array")


WHOLE = FOUND.to_bytes()
OTHERS = {
    "prose": lambda path: path.write_bytes(b"hello"),
    "empty": lambda path: path.write_bytes(b""),
    "pickle": lambda path: path.write_bytes(pickle.dumps(Evil())),
    "truncated": lambda path: path.write_bytes(WHOLE[: len(WHOLE) // 2]),
    "pickled array": lambda path: np.savez(path, facts=np.array([Evil()], object), allow_pickle=True),
    "bad zip": zipped,
}


@pytest.mark.parametrize("content", OTHERS)
def test_other_files_are_refused_and_nothing_is_unpickled(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "worst.npz"
    OTHERS[content](path)
    with pytest.raises(InputError, match=r"worst\.npz: not the inputs of a check"):
        Counterexample.load(path)
    assert not (tmp_path / "executed").exists()


def test_arrays_alone_are_the_arguments_in_order(tmp_path):
    np.savez(tmp_path / "inputs.npz", x=np.ones(3), a=np.zeros(2))
    found = Counterexample.load(tmp_path / "inputs.npz")
    assert [array.shape for array in found.arrays] == [(3,), (2,)]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.npz: cannot be read: No such file"):
        Counterexample.load(tmp_path / "absent.npz")


def test_inputs_of_another_program_are_refused(lowered):
    types = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in ARRAYS]
    own, other = (lowered(lambda *arrays: arrays[0], *given) for given in (types, types[:-1]))
    assert require_fitting(FOUND, "worst.npz", other, own) is own
    with pytest.raises(InputError, match=r"worst\.npz: inputs of another program: they are float32\[2, 3\]"):
        require_fitting(FOUND, "worst.npz", other)
