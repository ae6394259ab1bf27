"""Inputs by rule and outputs by digest."""

import math

import numpy as np
import pytest

from fusionlab.corpus.references import InputSpec, OutputDigest

SPEC = {"name": "x", "shape": [3, 4], "dtype": "float32", "draw": "normal", "low": 1.0, "high": 2.0}


def test_an_input_is_the_stream_of_its_number():
    given = InputSpec.from_json(SPEC).array(7)
    assert given.dtype == np.float32
    expected = (1 + 2 * np.random.RandomState(7).standard_normal((3, 4))).astype(np.float32)
    assert np.array_equal(given, expected)
    uniform = InputSpec.from_json({**SPEC, "draw": "uniform", "shape": []}).array(0)
    assert uniform.shape == ()
    assert 1 <= uniform < 2
    numbers = InputSpec.from_json({**SPEC, "draw": "integers", "dtype": "int32", "high": 4, "shape": [64]}).array(0)
    assert set(numbers.tolist()) == {1, 2, 3}


@pytest.mark.parametrize(
    "wrong",
    [
        {"draw": "gamma"},
        {"dtype": "float31"},
        {"dtype": "object"},
        {"shape": ["x"]},
        {"shape": "12"},
        {"shape": [-1]},
        {"shape": [1.5]},
        {"shape": [True]},
        {"shape": [10**13]},
        {"shape": [0, 10**13]},
        {"shape": [1] * 33},
        {"low": "x"},
        {"low": math.nan},
        {"high": math.inf},
        {"high": -1.0},
        {"draw": "uniform", "low": 2.0, "high": 2.0},
        {"draw": "uniform", "low": -1e308, "high": 1e308},
        {"draw": "integers", "low": 3, "high": 2},
        {"draw": "integers", "low": 0.2, "high": 0.7},
        {"draw": "integers", "low": 0, "high": 2.0**64},
    ],
)
def test_an_input_of_another_form_is_refused(wrong):
    with pytest.raises((TypeError, ValueError)):
        InputSpec.from_json({**SPEC, **wrong})


def test_the_ends_of_a_draw():
    assert InputSpec.from_json({**SPEC, "high": 0.0}).array(0).tolist() == [[1.0] * 4] * 3  # no deviation
    wide = {**SPEC, "draw": "integers", "low": -(2**63), "high": 2**63, "dtype": "int64"}
    assert InputSpec.from_json(wide).array(0).shape == (3, 4)


def test_no_figure_of_a_digest_moves_by_more_than_an_element():
    random = np.random.default_rng(0)
    for _ in range(20):
        truth, noise = random.standard_normal((5, 9)), 1e-3 * random.standard_normal((5, 9))
        digest = OutputDigest.of(truth, "float64", 1.0)
        assert digest.error(truth) == pytest.approx(0.0, abs=1e-15)
        assert digest.error(truth + noise) <= np.abs(noise).max() + 1e-15


@pytest.mark.parametrize(
    ("found", "share"),
    [
        (np.float32([1, 2, 3]), 0.0),
        (np.float32([1, 2, 3.05]), 0.5),
        (np.float32([1, 2, 3.5]), 5.0),
        (np.float32([1, 2, np.nan]), math.inf),
        (np.float64([1, 2, 3]), math.inf),
        (np.float32([[1, 2, 3]]), math.inf),
    ],
)
def test_an_error_is_a_share_of_the_tolerance(found, share):
    digest = OutputDigest.of(np.array([1.0, 2, 3]), "float32", 0.1)
    assert digest.share(found) == pytest.approx(share, rel=1e-4)


def test_integers_are_exact_and_an_empty_output_is_one():
    digest = OutputDigest.of(np.int32([5, 6]), "int32", 0.0)
    assert digest.share(np.int32([5, 6])) == 0
    assert digest.share(np.int32([5, 7])) > 1
    assert OutputDigest.of(np.zeros((0, 3)), "float32", 0.0).share(np.zeros((0, 3), np.float32)) == 0


def test_complex_numbers_are_pairs():
    truth = np.array([[1 + 2j, 3 - 1j]])
    digest = OutputDigest.of(truth, "complex64", 0.1)
    assert digest.values == (1.0, 2.0, 3.0, -1.0)
    assert digest.share(truth.astype(np.complex64)) < 1e-5
    assert digest.share((truth + 0.5j).astype(np.complex64)) == pytest.approx(5.0, rel=1e-4)
    assert digest.share(truth.real.astype(np.float32)) == math.inf


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": [0]},
        {"at": [0, 9]},
        {"values": ["x", 1]},
        {"values": [math.nan, 1]},
        {"tolerance": math.inf},
        {"tolerance": -0.1},
        {"shape": [-2]},
        {"dtype": "float31"},
    ],
)
def test_a_digest_of_another_form_is_refused(wrong):
    entry = {"shape": [2], "dtype": "float32", "tolerance": 0.1, "mean": 0, "rms": 1, "at": [0, 1], "values": [1, -1]}
    assert OutputDigest.from_json(entry).values == (1.0, -1.0)
    with pytest.raises(ValueError):  # noqa: PT011 - the manifest says which program
        OutputDigest.from_json({**entry, **wrong})
