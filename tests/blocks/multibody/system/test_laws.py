"""Laws of time and of other variables."""

from __future__ import annotations

import pytest

from biella import DiagramError
from biella.blocks.multibody import Constant, Formula, Input, Linear, Sine, Table
from biella.blocks.multibody.system._laws import AbstractLaw


@pytest.mark.parametrize(
    "law",
    [
        Constant(3.0),
        Linear(1.0, -2.0),
        Sine(0.3, 7.0, 0.4, 1.0),
        Table([0, 0.5, 2.0], [0, 1, -1]),
        Table([0, 0.5, 1.3, 2.0], [0, 1, -1, 3], interpolation="cubic"),
        Formula("0.03*sin(5*pi*t)"),
        Formula("exp(-t)*t**3 - t**2.5 + 2**t + t**t"),
        Formula("hypot(t, 2) + atan2(t, 1 + t**2) + log(t)/sqrt(t)"),
        Formula("tan(t) + asin(t/2) - acos(t/3) + atan(2*t) + log10(t)"),
        Formula("sinh(t)*cosh(t)/tanh(t) + abs(-t) + min(t, 9) + max(t, t*t, -9)"),
        Formula("where(0 < t < 1, 3*t**2, -t) + clip(t, 0, 5) + t % 0.3 + sign(t) + floor(t)"),
    ],
)
def test_laws_and_their_derivatives(law: AbstractLaw) -> None:
    """Rates and accelerations agree with central differences, of an error of about 1e-8."""
    for t in (0.13, 0.7, 1.1):
        h = 1e-5
        around = [law.value(t - h), law.value(t), law.value(t + h)]
        assert law.rate(t) == pytest.approx((around[2] - around[0]) / (2 * h), rel=1e-7, abs=1e-7)
        slopes = law.rate(t + h) - law.rate(t - h)
        assert law.acceleration(t) == pytest.approx(slopes / (2 * h), rel=1e-6, abs=1e-6)
        assert law.jet(t)[0] == law.value(t)


def test_law_details() -> None:
    table = Table([0, 1], [2, 4])
    assert (table.value(-1), table.value(5), table.rate(5)) == (2, 4, 0)
    assert (table.value(0), table.value(0.25), table.rate(0.25)) == (2, 2.5, 2)
    cubic = Table([0, 1, 2, 3], [0, 1, 8, 27], interpolation="cubic")  # a cubic is its own spline
    assert cubic.jet(1.5) == pytest.approx((1.5**3, 3 * 1.5**2, 6 * 1.5), rel=1e-14)
    assert Formula("sqrt(t)").value(0.0) == 0.0  # though its rate there is infinite
    with pytest.raises(DiagramError, match=r"`sqrt\(t\)` has no finite value where t = 0"):
        Formula("sqrt(t)").rate(0.0)
    assert Input("push", 3.0).jet(1.0) == (3.0, 0.0, 0.0)
    assert Formula("l*v + t").evaluate(t=1.0, l=2.0, v=3.0) == 7.0
    assert Table([0, 1], [0, 10], of="l").evaluate(t=9.0, l=0.5, v=9.0) == 5.0
    with pytest.raises(DiagramError, match=r"must rise: 1 comes after 2"):
        Table([0, 2, 1], [0, 0, 0])
    with pytest.raises(DiagramError, match="same length"):
        Table([0, 2], [0, 0, 0])
    with pytest.raises(DiagramError, match="'linear' or 'cubic'"):
        Table([0, 2], [0, 0], interpolation="spline")
    with pytest.raises(DiagramError, match=r"`amplitude` of a Sine requires numbers, got 'a'"):
        Sine("a", 1.0)  # type: ignore[arg-type]
    with pytest.raises(DiagramError, match="`v` is one number"):
        Formula("v[0]")
