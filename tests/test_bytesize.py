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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "size") for text in (
            "", "GiB", "2 apples", "-1GiB", "0", "0GiB", "0.1b", "1e9", "2GiBs", "2,5GB", "nan",
        )),
        *((text, "must be below 8388608 TiB") for text in (
            "9" * 400, "9" * 5000 + ".5TiB", "8388608TiB", "1" + "0" * 308 + "kB",
        )),
    ],
)  # fmt: skip
def test_what_is_no_size(text, said):
    with pytest.raises(InputError, match=said) as caught:
        ByteSize.parse(text)
    assert len(str(caught.value)) < 100


def test_printing_round_trips_in_units_that_are_binary_where_exact():
    sizes = {
        1: "1B", 1023: "1023B", 1024: "1KiB", 2**31: "2GiB", 2 * 10**9: "1953125KiB", 3 * 2**29: "1536MiB",
        2**40: "1TiB",
    }  # fmt: skip
    assert {size: str(ByteSize(size)) for size in sizes} == sizes
    assert all(ByteSize.parse(text) == size for size, text in sizes.items())
    assert not UNBOUNDED
