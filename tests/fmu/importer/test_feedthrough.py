"""Feedthrough that is given instead of the declared one: order and loops follow it."""

from __future__ import annotations

from typing import Any

import pytest
from specimen import description, make_specimen

from biella import Diagram, DiagramError, Fmu, simulate
from biella.blocks import Gain
from biella.errors import FmuError

from .runs import EVERY, EVERY_ID

pytestmark = pytest.mark.engine


def pairs(block):
    inputs = [port.name for port in block.inputs]
    return {
        port.name: [inputs[n] for n in needs]
        for port, needs in zip(block.outputs, block.feedthrough, strict=True)
    }


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_named_outputs_change_and_the_others_stay(specimen, options):
    declared = {"y": ["u"], "m": ["n"], "c": ["b"], "s": [], "q": []}
    assert pairs(Fmu(specimen, **options)) == declared
    given: dict[str, Any] = {"y": [], "s": ["w[1]", "u"], "q": True, "m": "n"}
    everything = ["u", "n", "b", "w"]
    assert pairs(Fmu(specimen, feedthrough=given, **options)) == declared | {
        "y": [], "s": ["u", "w"], "q": everything,
    }  # fmt: skip
    none: dict[str, list[str]] = {name: [] for name in declared}
    assert pairs(Fmu(specimen, feedthrough=False, **options)) == none
    every = pairs(Fmu(specimen, feedthrough=True, **options))
    assert every == dict.fromkeys(declared, everything)


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_a_loop_that_was_declared_wrongly_is_no_loop(tmp_path, options):
    """s depends on w through a state only: s' = w0, w0 = -s closes no algebraic loop.

    Without ModelStructure, every output depends on every input; y = k u + x is one, and the loop
    through it is s -> gain -> w, solved at every tick. With the override there is nothing to solve.
    """
    xml = description()
    xml = xml[: xml.index("<ModelStructure>")] + "<ModelStructure/></fmiModelDescription>"
    path = make_specimen(tmp_path / "s.fmu", xml=xml)

    def diagram(**more):
        d = Diagram("loop", step=0.01)
        ports: dict[str, Any] = {"inputs": ["w[0]"], "outputs": ["s"]}
        f = d.add(Fmu(path, validate=False, **ports, **options, **more), name="f")
        gain = d.add(Gain(-1.0), name="gain")
        d.connect(f["s"], gain)
        d.connect(gain, f["w[0]"])
        return d

    assert diagram().compile().loops
    free = diagram(feedthrough={"s": []})
    assert not free.compile().loops
    result = simulate(free, 0.1)
    assert result["f.s"][0] == 0.0


@pytest.mark.parametrize("options", EVERY, ids=EVERY_ID)
def test_a_dependency_that_was_not_declared_is_respected(tmp_path, options):
    """y = k u + x, but the description denies it: then y shows the input of the step before."""
    xml = description().replace('index="2" dependencies="1"', 'index="2" dependencies=""')
    path = make_specimen(tmp_path / "s.fmu", xml=xml)

    def run(**more):
        from biella.blocks import Ramp

        d = Diagram("order", step=0.01)
        f = d.add(Fmu(path, inputs=["u"], outputs=["y"], **options, **more), name="f")
        d.connect(d.add(Ramp(slope=100.0, unit="m"), name="r"), f)
        return simulate(d, 0.05)["f.y"]

    x, exact, late, before = 0.0, [], [], 0.5
    for k in range(6):
        exact.append(2.0 * k + x)
        late.append(2.0 * before + x if k else 2.0 * 0.0 + x)
        x += 0.01 * (k - x)
        before = k
    assert run(feedthrough={"y": ["u"]}) == pytest.approx(exact, abs=1e-12)
    assert run() == pytest.approx(late, abs=1e-12)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"why": []}, FmuError, "names the output `why`, which specimen.fmu does not have"),
        ({"u": ["u"]}, FmuError, "the output `u`, which .* Outputs: y, m, c, s, q"),
        ({"y": ["U"]}, FmuError, r"the input `U`, .*Did you mean `u`\?.* Inputs: u, n, b, w"),
        ({"y": 3}, DiagramError, "`feedthrough` of `y` must be a list of inputs"),
        (["u"], DiagramError, "`feedthrough` must be True, False or a dictionary"),
    ],
)
def test_wrong_names_are_explained(specimen, given, error, message):
    with pytest.raises(error, match=message):
        Fmu(specimen, feedthrough=given)
