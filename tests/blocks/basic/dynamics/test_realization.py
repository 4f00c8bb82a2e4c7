"""State spaces from polynomials and roots: their transfer functions, and what is refused."""

import numpy as np
import pytest

from biella import DiagramError
from biella.blocks.basic.dynamics import _realization as r

POINTS = [0.3j, 2.0 + 1.0j, -0.7 + 5.0j, 40.0]


def transfer(system, s):
    resolvent = np.linalg.solve(s * np.eye(len(system.A)) - system.A, system.B)
    return (system.C @ resolvent + system.D)[0, 0]


@pytest.mark.parametrize(
    ("num", "den"),
    [
        ([3.0], [2.0, 5.0]),
        ([1.0, 4.0], [1.0, 3.0, 2.0]),
        ([2.0, 0.0, 1.0], [4.0, 1.0, 9.0]),  # as many zeros as poles
        ([1e-9, 1.0], [1e-12, 1e-5, 1.0]),  # small leading coefficients count
    ],
)
def test_a_realization_has_the_transfer_function(num, den):
    system = r.realize(np.array(num), np.array(den))
    for s in POINTS:
        assert transfer(system, s) == pytest.approx(np.polyval(num, s) / np.polyval(den, s))


def test_a_chain_has_its_zeros_poles_and_gain():
    zeros = np.array([-1 + 2j, -1 - 2j, 0.5])
    poles = np.array([-3 + 1j, -3 - 1j, -0.2, -7.0, -50.0])
    system = r.realize_chain(zeros, poles, 6.0)
    assert system.A.shape == (5, 5)
    assert np.sort_complex(np.linalg.eigvals(system.A)) == pytest.approx(np.sort_complex(poles))
    for s in POINTS:
        expected = 6.0 * np.prod(s - zeros) / np.prod(s - poles)
        assert transfer(system, s) == pytest.approx(expected)


def test_sections_are_real_and_proper_and_use_every_root_once():
    zeros = np.array([2.0, -1 + 2j, -4.0, -1 - 2j])
    poles = np.array([-3 + 1j, -9.0, -3 - 1j, -0.2, -8 - 5j, -8 + 5j])
    sections = r.pair_roots(zeros, poles)
    for some_zeros, some_poles in sections:
        assert len(some_zeros) <= len(some_poles) <= 2
        for roots in (some_zeros, some_poles):
            assert np.max(np.abs(np.imag(np.poly(roots)))) == 0.0
    for n, given in enumerate((zeros, poles)):
        used = [root for section in sections for root in section[n]]
        assert np.array_equal(np.sort_complex(np.array(used)), np.sort_complex(given))


def test_scaling_keeps_the_transfer_function_and_evens_out_the_entries():
    system = r.realize(np.array([1e12]), np.array([1.0, 2e6, 1e12]))
    scaled = r.scale(system)
    for s in (1e5j, 1e6 + 1e6j):
        assert transfer(scaled, s) == pytest.approx(transfer(system, s))

    def spread(matrix):
        sizes = np.abs(matrix[matrix != 0])
        return sizes.max() / sizes.min()

    assert spread(system.A) == 1e12 and spread(scaled.A) < 10
    assert 0.25 < np.abs(scaled.B).max() / np.abs(scaled.C).max() < 4
    nonzero = system.A != 0
    mantissas, _ = np.frexp(scaled.A[nonzero] / system.A[nonzero])
    assert np.all(mantissas == 0.5), "powers of two, so that nothing is rounded"


def test_matrices_are_brought_into_shape():
    system = r.check_matrices(-1.0, [2.0], 3.0, None)
    assert [m.shape for m in system] == [(1, 1)] * 4 and system.D == 0.0
    two = r.check_matrices(np.eye(2), [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]], [5.0, 6.0])
    assert two.B.shape == (2, 1) and two.D.tolist() == [[5.0], [6.0]]


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ((np.ones((2, 3)), 1, 1, None), r"A must be square, got shape \(2, 3\)"),
        ((np.eye(2), [1.0], [[1.0, 0.0]], None), "B needs 2 rows"),
        ((np.eye(2), [1.0, 0.0], [[1.0]], None), "C needs 2 columns"),
        ((np.eye(2), [1.0, 0.0], [[1.0, 0.0]], np.eye(2)), r"D must have shape \(1, 1\)"),
    ],
)
def test_a_matrix_of_another_shape_is_named(matrices, message):
    with pytest.raises(DiagramError, match=message):
        r.check_matrices(*matrices)


def test_leading_zeros_of_polynomials_are_dropped():
    num, den = r.check_polynomials("TransferFunction", "s", [0.0, 0.0, 3.0], [0.0, 2.0, 1.0])
    assert num.tolist() == [3.0] and den.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("num", "den", "message"),
    [
        ([0.0], [1.0, 1.0], "`num` is zero"),
        ([1.0], [0.0, 0.0], "`den` is zero"),
        ([3.0], [2.0], r"`den` has no s, so this is a gain: use Gain\(1.5\)"),
        ([1.0, 0.0, 0.0], [1.0, 1.0], "`num` has degree 2 in s, `den` only 1.*Derivative"),
        ([[1.0]], [1.0, 1.0], "one list of coefficients"),
    ],
)
def test_polynomials_that_make_no_system_are_refused(num, den, message):
    with pytest.raises(DiagramError, match=f"TF: .*{message}"):
        r.check_polynomials("TF", "s", num, den)


def test_an_improper_function_of_z_would_need_future_samples():
    with pytest.raises(DiagramError, match="future samples"):
        r.check_polynomials("DTF", "z", [1.0, 0.0], [0.0, 2.0])


@pytest.mark.parametrize(
    ("zeros", "poles", "gain", "message"),
    [
        ([], [], 1.0, "without poles this is a gain"),
        ([-1, -2], [-3], 1.0, "2 zeros, but only 1 poles"),
        ([], [-1 + 1j], 1.0, "conjugate pairs"),
        ([], [np.nan], 1.0, "finite numbers"),
        (["a"], [-1], 1.0, "`zeros` requires numbers"),
        ([], [-1], [1.0, 2.0], "gain is one number"),
    ],
)
def test_roots_that_make_no_system_are_refused(zeros, poles, gain, message):
    with pytest.raises(DiagramError, match=message):
        r.check_roots(zeros, poles, gain)
