"""XYZ files: what is read, and the line that a bad one gets."""

import pytest

from fusionlab.errors import InputError
from workloads.molecules import find_molecule
from workloads.xyz import read_xyz

WATER = "3\nwater\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nh 0 -0.7572 -0.4692\n"


def write(folder, text):
    path = folder / "mine.xyz"
    path.write_text(text)
    return str(path)


def test_reads_elements_and_converts_angstrom_to_bohr(tmp_path):
    water = find_molecule(write(tmp_path, WATER))
    assert (water.name, water.charges, water.electrons, water.n_up) == ("mine", (8, 1, 1), 10, 5)
    assert water.positions[1][1] == pytest.approx(0.7572 / 0.529177210903, rel=1e-12)


def test_charge_and_spin(tmp_path):
    path = write(tmp_path, WATER)
    assert read_xyz(path, charge=1).spin == 1
    assert read_xyz(path, spin=2).n_up == 6
    assert find_molecule("LiH", charge=1).n_up - find_molecule("LiH", charge=1).n_down == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("\u00b2\n\nO 0 0 0\n", "line 1: expected the number of atoms"),
        ("9" * 5000 + "\n\nO 0 0 0\n", "line 1: expected the number of atoms"),
        ("1\n\n\u00b2 0 0 0\n", "line 3: unknown element"),
        ("three\nwater\nO 0 0 0\n", "line 1: expected the number of atoms"),
        ("2\n\nO 0 0 0\n", "announces 2 atoms, but only 1"),
        ("1\n\nO 0 0 0\nH 0 0 1\n", "announces 1 atoms, but more follow"),
        ("1\n\nXx 0 0 0\n", "line 3: unknown element 'Xx'"),
        ("1\n\nO 0 zero 0\n", "line 3: coordinates must be numbers"),
        ("1\n\nO 0 nan 0\n", "line 3: coordinates must be finite"),
        ("1\n\nO 0 0\n", "line 3: expected 'element x y z'"),
        ("2\n\nH 0 0 0\nH 0 0 0\n", "lines 3 and 4 place two nuclei 0 angstrom apart; they must be at least 0.1 "),
        ("3\n\nO 0 0 0\nH 0 0 1\nH 0 1e-11 1\n", "lines 4 and 5 place two nuclei 1e-11 angstrom apart"),
    ],
)
def test_bad_files_get_one_clear_line(tmp_path, text, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        read_xyz(write(tmp_path, text))
    assert "mine.xyz" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value).removeprefix(str(tmp_path))) < 130
