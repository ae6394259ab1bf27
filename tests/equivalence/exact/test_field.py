"""The arithmetic of the prime field against Python's integers."""

from fractions import Fraction

import numpy as np
import pytest

from fusionlab.equivalence.exact import field as prime_field
from fusionlab.equivalence.exact.field import MOST_TERMS, PrimeField, primes

P = primes(1)[0]


@pytest.fixture(scope="module")
def field():
    return PrimeField(P, [0, 1])


@pytest.fixture
def residues():
    half = (P - 1) // 2
    edges = np.array([0, 1, -1, half, -half, half - 1], np.float64)
    drawn = np.random.default_rng(0).integers(-half, half + 1, 500).astype(np.float64)
    return np.concatenate([edges, drawn])[None]


def canonical(integer):
    integer %= P
    return integer - P if integer > (P - 1) // 2 else integer


@pytest.mark.parametrize("p", primes(3))
def test_primes_are_safe_and_minus_one_is_no_square(p):
    assert all(p % k and ((p - 1) // 2) % k for k in range(2, 1500) if k < (p - 1) // 2)
    assert pow(p - 1, (p - 1) // 2, p) == p - 1
    assert all(pow(q, (p - 1) // 2, p) == 1 for q in (2, 3, 5, 7))


def test_ring_operations(field, residues):
    x, y = residues, residues[:, ::-1]
    for name, exact in (("add", int.__add__), ("subtract", int.__sub__), ("multiply", int.__mul__)):
        found = getattr(field, name)(x, y)
        assert [canonical(exact(int(a), int(b))) for a, b in zip(x[0], y[0], strict=True)] == found[0].tolist(), name


@pytest.mark.parametrize(("most", "near"), [(2**48, 2**48), (2**53, 2**53), (2**53, 2**52), (2**41, 2**41)])
@pytest.mark.parametrize("p", primes(2))
def test_reduction_is_exact_where_a_quotient_is_nearest_to_a_half(most, near, p):
    last = near // p - 1
    halves = [k * p + (p + odd) // 2 for k in range(last - 2000, last) for odd in (1, -1)]
    integers = [*halves, *(-half for half in halves)]
    found = PrimeField(p, [0])._reduced(np.array(integers, np.float64), most)
    assert [integer % p for integer in integers] == (found % p).astype(int).tolist()
    assert np.abs(found).max() == (p - 1) // 2


def test_integers_do_not_depend_on_the_draws_evaluated_beside_them(residues):
    together = PrimeField(P, [0, 1, 2]).integers_of(np.repeat(residues, 3, 0), np.int32)
    for seed in range(3):
        assert np.array_equal(PrimeField(P, [seed]).integers_of(residues, np.int32)[0], together[seed])


HALF = (P - 1) // 2
SQUARES = [("multiply", 0, 0), ("multiply", 1, 1)]
CODES = {
    "one op": [("subtract", 0, 1)],
    "no arithmetic": [("negate", 0)],
    "sum of products": [*SQUARES, ("add", 2, 3), ("subtract", 4, 0), ("negate", 5)],
    "product of products": [*SQUARES, ("multiply", 2, 3), ("multiply", 4, 2), ("add", 5, 4)],
    "powers": [("multiply", 0, 1), *(("multiply", at, at) for at in range(2, 12))],
    "sums of sums": [("add", 0, 1), *(("add", at, at) for at in range(2, 40))],
}


def one_by_one(field, code, operands):
    values = list(operands)
    for name, *read in code:
        values.append(getattr(field, name)(*(values[at] for at in read)))
    return values[-1]


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
@pytest.mark.parametrize("kind", ["real", "complex", "one complex", "not a number"])
def test_a_polynomial_is_its_operations_one_by_one(field, code, kind):
    random = np.random.default_rng(0)
    x, y = random.choice([-HALF, HALF, 0, 1, HALF - 1, 12345], (2, 2, 90, 400)).astype(np.float64)
    if kind == "not a number":
        x[0, :, 3] = np.nan
    elif kind != "real":
        x, y = x + 1j * x[::-1], (y - 1j * y[:, ::-1] if kind == "complex" else y)
    assert np.array_equal(field.polynomial(tuple(code), [x, y]), one_by_one(field, code, [x, y]), equal_nan=True)


@pytest.mark.parametrize(
    "shapes",
    [
        ((1, 3, 70, 80), (2, 3, 1, 80)),
        ((1,), (2,)),
        ((2, 0, 5), (1, 1, 5)),
        ((1, 20_000), (1, 1)),
        ((2, 1, 9), (1, 4, 1)),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_operands_of_a_polynomial_have_any_shape_and_layout(field, shapes, order):
    random = np.random.default_rng(0)
    x, y = (np.asarray(random.integers(-HALF, HALF, shape).astype(np.float64), order=order) for shape in shapes)
    code = (("multiply", 0, 1), ("multiply", 2, 1), ("add", 3, 0))
    found = field.polynomial(code, [x, y])
    assert np.array_equal(found, one_by_one(field, code, [x, y]))
    assert found.shape == np.broadcast_shapes(*shapes)


def test_quotients(field, residues):
    x = residues[residues != 0][None]
    assert (field.multiply(field.inverse(x), x) == 1).all()
    assert field.inverse(np.zeros((1, 1))).tolist() == [[0.0]]


@pytest.mark.parametrize("terms", [3, MOST_TERMS, MOST_TERMS + 5])
def test_contractions_of_largest_residues_are_exact(field, terms):
    half = (P - 1) // 2
    found = field.matmul(np.full((1, terms), half * 1.0), np.full((terms, 1), half * 1.0))
    assert found.item() == canonical(half * half * terms)


def test_complex_contractions_of_largest_residues_are_exact(field):
    half = (P - 1) // 2 * (1 - 1j)
    found = field.matmul(np.full((1, MOST_TERMS), half), np.full((MOST_TERMS, 1), half))
    assert found.item() == 1j * canonical(-2 * ((P - 1) // 2) ** 2 * MOST_TERMS)


@pytest.mark.parametrize("number", [1.0, -0.1, 1e-30, 3.0e38, 2.0**-1074, np.pi, float(np.float32(0.1)), 12345.678])
def test_floats_are_embedded_exactly(field, number):
    exact = Fraction(number)
    expected = canonical(exact.numerator * pow(exact.denominator, -1, P))
    assert field.embedded(np.array([number, 1.0]))[0, 0] == expected
    assert field.embedded(np.array(number)).item() == expected


def test_functions_are_bound_by_these_identities_alone(field, residues):
    one = np.ones((1, 1))
    power = field.function("exponential", residues)
    assert (field.multiply(power, field.function("exponential", -residues)) == 1).all()
    logistic = field.function("logistic", residues)
    assert (field.add(logistic, field.function("logistic", -residues)) == one).all()
    assert (field.function("tanh", -residues) == -field.function("tanh", residues)).all()
    squares = field.multiply(residues, residues)
    root = field.function("sqrt", squares)
    assert (field.multiply(root, root) == squares).all()
    assert (field.multiply(root, field.function("rsqrt", squares))[squares != 0] == 1).all()
    assert (field.power(squares, 1.5) == field.multiply(squares, root)).all()
    root, inverse = field.function("sqrt", residues), field.function("rsqrt", residues)
    assert (field.multiply(root, inverse)[residues != 0] == 1).all()
    assert not (root == field.function("sqrt", -residues))[residues != 0].any()
    assert not (field.function("log", residues)[0] == field.function("log", residues)[1]).all()  # draws differ


def test_the_order_is_antisymmetric_and_invariant_under_translations(field, residues):
    x, y = residues, residues[:, ::-1]
    above, below = field.compare("GT", x, y), field.compare("LT", x, y)
    assert (above ^ below == (x != y)).all()
    assert (field.compare("GT", field.add(x, residues), field.add(y, residues)) == above).all()
    assert (field.compare("GE", x, y) == above | (x == y)).all()
    assert 0.3 < above.mean() < 0.7
    infinite = np.full_like(x, field.infinity)
    assert field.compare("GT", infinite, x).all()
    assert field.compare("LT", -infinite, x).all()


def test_a_steered_order_answers_as_it_is_told(field):
    differences = np.array([[5.0, 6.0, 7.0]])
    for answer in (True, False):
        wishes = np.array([5, 6] if answer else [-5, -6])
        steered = field.steered([wishes, wishes[:0]])
        assert (steered.compare("GT", differences, np.zeros((1, 3)))[0, :2] == answer).all()
        assert (steered.compare("LT", -differences, np.zeros((1, 3)))[0, :2] == answer).all()
        assert (
            steered.compare("GT", differences, np.zeros((1, 3)))[1]
            == field.compare("GT", differences, np.zeros((1, 3)))
        ).all()


@pytest.mark.parametrize("exponent", [0.5, -0.5, 1.5, 1 / 3, -1.0])
def test_powers_of_few_residues_are_those_of_many(exponent):
    """Those of many are looked up in a table of all residues."""
    [p] = primes(1)
    field = PrimeField(p, (0,))
    many = np.random.default_rng(0).integers(-(p // 2), p // 2, (1, 2**16)).astype(np.float64)
    many[0, :2] = 0, 1
    powers = field.power(many, exponent)
    assert np.array_equal(field.power(many[:, :100], exponent), powers[:, :100])
    assert powers[0, 1] == 1


def test_powers_of_few_residues_are_those_of_integers(field, residues, monkeypatch):
    """By ``pow``, and without the table of all residues."""
    monkeypatch.setattr(prime_field, "_power_table", lambda p, exponent: pytest.fail("the table was built"))
    integers = [int(x) for x in residues[0]]
    assert field.power(residues, -1.0)[0].tolist() == [canonical(pow(x, -1, P)) if x else 0 for x in integers]
    squares = [canonical(x * x) for x in integers]
    roots, others = (field.power(np.array([squares], np.float64), exponent)[0] for exponent in (0.5, 1.5))
    assert [canonical(int(root) ** 2) for root in roots] == squares
    assert others.tolist() == [canonical(x * int(root)) for x, root in zip(squares, roots, strict=True)]
