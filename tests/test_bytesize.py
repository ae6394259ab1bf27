"""Byte sizes as people write them."""

import pytest

from fusionlab.bytesize import UNBOUNDED, ByteSize
from fusionlab.errors import InputError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GiB", 2 * 2**30), ("2GB", 2 * 10**9), ("2 gb", 2 * 10**9), ("1.5GiB", 3 * 2**29), ("800MiB", 800 * 2**20),
        ("64KiB", 65536), ("1TB", 10**12), ("123", 123), ("123b", 123), (" 5 kB ", 5000),
    ],
)  # fmt: skip
def test_parse(text, size):
    assert ByteSize.parse(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "2 apples", "-1GiB", "0", "0GiB", "0.1b", "1e9", "2GiBs", "2,5GB", "nan"])
def test_what_is_no_size(text):
    with pytest.raises(InputError, match="size"):
        ByteSize.parse(text)


@pytest.mark.parametrize("text", ["9" * 400, "9" * 5000 + ".5TiB", "8388608TiB", "1" + "0" * 308 + "kB"])
def test_no_size_is_that_large(text):
    with pytest.raises(InputError, match="must be below 8388608 TiB") as caught:
        ByteSize.parse(text)
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize("size", [1, 1023, 1024, 2 * 10**9, 2**31, 3 * 2**29, 2**40])
def test_printing_round_trips(size):
    assert ByteSize.parse(str(ByteSize(size))) == size


def test_units_are_binary_where_exact():
    assert [str(ByteSize(size)) for size in (2**31, 2 * 10**9, 1000)] == ["2GiB", "1953125KiB", "1000B"]
    assert not UNBOUNDED
