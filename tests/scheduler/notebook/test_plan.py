"""Plans and models in notebooks and terminals."""

import re

from biella import Diagram, Plan, simulate
from biella.blocks import Gain, Integrator, Step, Sum, python_block


def double(u):
    return 2 * u


def make(loop=False):
    d = Diagram("plan <x>", step=1e-3)
    ref = d.add(Step(at=0.5), "ref")
    total = d.add(Sum("+-"), "total", u1=ref)
    last = d.add(Gain(0.5) if loop else Integrator(), "last", u=total)
    d.connect(last, total["u2"])
    d.output("y", last)
    return d.compile()


def test_a_model_and_a_plan_are_one_line_in_a_terminal(tmp_path):
    model = make()
    size = len(model.data)
    assert repr(model) == f"Model('plan <x>', 3 blocks, step 0.001 s, rk4, {size} bytes)"
    model.save(tmp_path / "a.plan")
    plan = Plan.load(tmp_path / "a.plan")
    assert repr(plan) == f"Plan('plan <x>', 3 blocks, step 0.001 s, rk4, {size} bytes)"
    assert plan._repr_html_().replace("· plan ·", "· model ·") == model._repr_html_()


def test_a_damaged_plan_is_told_in_a_terminal():
    assert repr(Plan(b"nothing", {})).startswith("Plan(7 bytes: it does not start with")


def test_the_schedule_is_in_the_order_of_execution():
    model = make()
    made = model._repr_html_()
    paths = re.findall(r'<tr><td class="number">\d+</td><td>([^<]+)</td>', made)
    told = [line.split()[1] for line in model.report().splitlines() if re.match(r" *\d+  ", line)]
    assert paths == told and set(paths) == {"ref", "total", "last"}
    assert "plan &lt;x&gt;" in made and "hash " + model.hash[:12] in made
    assert "<td>ref.at</td>" in made and "<td>output</td><td>y</td>" in made


def test_loops_and_python_blocks_are_named():
    assert "1 algebraic loop, solved" in make(loop=True)._repr_html_()
    d = Diagram("python")
    d.add(python_block()(double)(), "mine", u=d.add(Step(), "ref"))
    model = d.compile()
    assert "Python blocks: mine" in model._repr_html_()
    assert simulate(model, 0.01).length == 11
