"""What every block has: it is fixed once made, and describes itself."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
from typing import Any

import numpy as np
import pytest

from biella import Diagram, DiagramError, Subsystem, simulate
from biella.blocks import (
    ADC,
    PID,
    Constant,
    Expression,
    Gain,
    Integrator,
    Lookup1D,
    Product,
    PythonBlock,
    Saturation,
    ShortBearing,
    Sum,
    python_block,
)
from biella.blocks.multibody.mechanisms import slider_crank


class Lag(PythonBlock):
    """dy/dt = (u - y) / tau, with an attribute that users may change."""

    def __init__(self, tau: float = 1.0) -> None:
        super().__init__(inputs=["u"], outputs=["y"], state=[0.0], feedthrough=False)
        self.tau = tau

    def output(self, t: float, x: Any, u: Any) -> Any:
        return x[0]

    def derivative(self, t: float, x: Any, u: Any) -> Any:
        return (u - x[0]) / self.tau


class TestFixed:
    @pytest.mark.parametrize(
        ("make", "name", "message"),
        [
            (lambda: Gain(2.0), "k", r"`k` of Gain .*Gain\(k=…\).*parameters=\{'<name of the bl"),
            (lambda: Gain(2.0), "gain", r"`gain` of Gain cannot be assigned: .*new Gain\(…\)"),
            (lambda: Gain(2.0), "kernel", "`kernel` of Gain cannot be assigned"),
            (lambda: Gain(2.0), "rate", r"rate of Gain .*give the period to d.add\(…, period=…"),
            (lambda: Gain(2.0), "period", r"give the period to d.add"),
            (lambda: PID(1.0), "period", r"give the period to PID\(…, period=…\)"),
            (lambda: ShortBearing(0.02, 0.01, 2e-5, 0.03), "radius", r"ShortBearing\(radius=…\)"),
            (lambda: Subsystem(Diagram()), "diagram", "`diagram` of Subsystem"),
            (lambda: Diagram().input("u"), "port", "`port` of Inport"),
            (lambda: slider_crank(planar=True).block(), "gravity", "`gravity` of Plant"),
            (lambda: Lag(), "inputs", "`inputs` of Lag cannot be assigned"),
            (lambda: Lag(), "initial_state", "`initial_state` of Lag cannot be assigned"),
        ],
    )
    def test_what_is_read_at_construction(self, make: Any, name: str, message: str) -> None:
        block = make()
        before = dict(vars(block))
        with pytest.raises(DiagramError, match=message):
            setattr(block, name, 3.0)
        assert vars(block) == before

    def test_the_remedies_work(self) -> None:
        d = Diagram()
        d.add(Gain(2.0), "p", u=d.add(Constant(1.0)))
        assert simulate(d, 0.01, parameters={"p.k": 3.0})["p"][-1] == 3.0

    def test_attributes_of_a_python_block_are_its_authors(self) -> None:
        """Its methods read them while it runs."""
        d = Diagram(step=0.01)
        lag = d.add(Lag(), "lag", u=d.add(Constant(1.0)))
        slow = simulate(d, 1.0)["lag"][-1]
        lag.tau = 0.1
        assert simulate(d, 1.0)["lag"][-1] == pytest.approx(1 - np.exp(-10), abs=1e-4) != slow

    def test_a_subclass_may_set_attributes_around_the_constructor_of_its_parent(self) -> None:
        class Named(Gain):
            def __init__(self, label: str) -> None:
                self.before = label
                super().__init__(2.0)
                self.after = label

        block = Named("a")
        assert (block.before, block.after) == ("a", "a")
        with pytest.raises(DiagramError, match="`after` of Named"):
            block.after = "b"

    def test_copies_are_fixed_too(self) -> None:
        for block in (copy.copy(Gain(2.0)), pickle.loads(pickle.dumps(Gain(2.0)))):
            assert repr(block) == "Gain(k=2.0)"
            with pytest.raises(DiagramError, match="`k` of Gain"):
                block.k = 1.0

    def test_a_copy_with_other_attributes_leaves_the_block_as_it_is(self) -> None:
        block = Gain(2.0)
        other = block.copy_with(inputs=())
        assert other.inputs == () and len(block.inputs) == 1


class TestWords:
    @pytest.mark.parametrize(
        ("block", "text"),
        [
            (Gain(2.0), "Gain(k=2.0)"),
            (Gain(), "Gain()"),
            (Gain([1, 2], unit="N"), "Gain(k=[1, 2], unit='N')"),
            (Gain(np.eye(3)), "Gain(k=<3×3 array>)"),
            (Gain(np.float64(0.5)), "Gain(k=0.5)"),
            (Sum("+-"), "Sum(signs='+-')"),
            (Saturation(-1, upper=2), "Saturation(lower=-1, upper=2)"),
            (Lookup1D(range(9), np.arange(9)), "Lookup1D(x=<9 items>, y=<9 array>)"),
            (Expression("a" * 40), f"Expression(formula='{'a' * 29}…')"),
            (Lag(0.5), "Lag(tau=0.5)"),
            (python_block()(lambda u: u)(), "<lambda>"),
        ],
    )
    def test_repr_is_how_it_was_made(self, block: Any, text: str) -> None:
        assert repr(block) == text

    def test_messages_have_the_short_name(self) -> None:
        assert str(Gain(2.0)) == "Gain" and f"{Lag()}" == "Lag"

    def test_description(self) -> None:
        pid = PID(2.0, ki=3.0, unit="N", input_unit="m", period=1e-3)
        lines = [line.split() for line in pid.describe().splitlines()]
        assert lines[:3] == [
            ["PID(kp=2.0,", "ki=3.0,", "unit='N',", "input_unit='m',", "period=0.001)"],
            ["inputs"],
            ["reference", "m", "set", "point", "of", "the", "measurement"],
        ]
        assert ["ki", "=", "3.0", "N/(m.s)", "integral", "gain"] in lines
        assert lines[-1] == ["rate:", "every", "0.001", "s"]
        assert Gain([1.0, 2.0]).describe() == (
            "Gain(k=[1.0, 2.0])\n"
            "  inputs\n    u  2 values, any unit\n"
            "  outputs\n    y  2 values, any unit\n"
            "  parameters\n    k  = [1.0, 2.0]  gain\n"
            "  rate: inherited from its inputs"
        )

    @pytest.mark.parametrize(
        ("block", "lines"),
        [
            (Sum("++"), ["u1  width n, common unit", "rate: inherited from its inputs"]),
            (Product("**"), ["y  width n, unit from u1, u2"]),
            (Integrator(limits=(0, 1)), ["rate: continuous", "lower"]),
            (ADC(12, period=1e-3), ["rate: every 0.001 s", "fixed during a run"]),
            (ShortBearing(0.02, 0.01, 2e-5, 0.03), ["2 values, m/s, default 0.0", "boolean"]),
        ],
    )
    def test_descriptions_name_units_widths_and_rates(self, block: Any, lines: list[str]) -> None:
        text = block.describe()
        assert [line for line in lines if line not in text] == []

    def test_help_of_a_block_shows_its_ports(self) -> None:
        shown = pydoc.plain(pydoc.render_doc(Gain([1.0, 2.0])))
        assert "A gain: y = k u." in shown and "u  2 values, any unit" in shown
        shown = pydoc.plain(pydoc.render_doc(Lag(0.5)))
        assert "with an attribute" in shown and "rate: continuous" in shown

    def test_help_of_a_class_is_its_docstring(self) -> None:
        assert Gain.__doc__ is not None and Gain.__doc__.startswith("A gain")
        assert (inspect.getdoc(Gain) or "").startswith("A gain: y = k u.\n\nParameters")
        assert list(inspect.signature(Gain).parameters) == ["k", "unit"]


def test_a_port_is_selected_by_name():
    with pytest.raises(DiagramError, match=r"has no port `0`\. Ports are selected by name\. Inp"):
        Gain(2.0)[0]  # type: ignore[index]
