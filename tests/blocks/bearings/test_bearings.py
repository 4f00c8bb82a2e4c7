"""Bearings as blocks: dimensions, contacts and inputs that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from biella import BlockError, Diagram, DiagramError
from biella.blocks import Constant
from biella.blocks.bearings import (
    Contact,
    FiniteBearing,
    LongBearing,
    ShortBearing,
)
from biella.blocks.bearings._analysis import open_film

from .film_cases import EVERY_MODEL, MU, SIZE, B, C, R

pytestmark = pytest.mark.engine


@EVERY_MODEL
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("port", ["position", "velocity", "journal_speed", "bush_speed"])
@pytest.mark.parametrize("contact", [Contact(), None], ids=["contact", "stop"])
def test_input_that_is_not_finite_is_named(model, wrong, port, contact):
    bearing = model(*SIZE, contact=contact)
    with open_film(bearing) as film:
        slot = film.instance.plan.inputs[port].slot
        film.instance.values[slot] = wrong
        film.instance.touch()
        with pytest.raises(BlockError, match="not finite"):
            film.instance.run(2)


@EVERY_MODEL
@pytest.mark.parametrize("name", ["radius", "length", "clearance", "viscosity"])
def test_dimension_set_to_nothing_stops_the_run(model, name):
    with open_film(model(*SIZE)) as film:
        film.instance.set(f"bearing.{name}", 0.0)
        with pytest.raises(BlockError, match=rf"its dimensions make no bearing: .*{name} 0"):
            film.instance.evaluate()


def test_number_of_a_contact_set_to_nonsense_is_named():
    with open_film(ShortBearing(*SIZE)) as film:
        film.instance.set("bearing.contact_damping", -2.0)
        with pytest.raises(BlockError, match=r"make no bearing: .*contact_damping -2 s/m"):
            film.instance.evaluate()


@pytest.mark.parametrize("length", ["30 mm", None])
@pytest.mark.parametrize("options", [{"grooves": [(0.0, 0.1)]}, {"bush": [0.0, 0.0, 0.0]}])
def test_bad_dimensions_of_a_finite_film_are_reported_before_anything_else(length, options):
    with pytest.raises(DiagramError, match="`length` of FiniteBearing must be positive, in m"):
        FiniteBearing(R, length, C, MU, **options)


@EVERY_MODEL
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clearance": 0.0}, r"`clearance` of \w+ must be positive, in m; got 0"),
        ({"clearance": -1e-5}, "`clearance`.*must be positive"),
        ({"viscosity": np.nan}, r"`viscosity`.*must be positive, in Pa s; got nan"),
        ({"radius": "20 mm"}, "`radius`.*got '20 mm'"),
        ({"length": np.inf}, "`length`"),
        ({"clearance": 0.02}, "not a thin film. Are both in meters"),
        ({"film_limit": 1.0}, "`film_limit`.*between 0 and the clearance"),
        ({"film_limit": 0.0}, "above 0 with a contact"),
        ({"film_limit": np.nan}, "`film_limit`"),
        ({"friction": "dry"}, "`friction` of .* is one of 'none', 'shear'.*got 'dry'"),
        ({"contact": Contact(stiffness=-1.0)}, "`stiffness` of a Contact"),
        ({"contact": Contact(slip_speed=0.0)}, "`slip_speed` of a Contact"),
        ({"contact": Contact(slip_speed=np.inf)}, "`slip_speed` of a Contact"),
        ({"contact": Contact(friction=np.nan)}, "`friction` of a Contact"),
        ({"contact": Contact(stiffness="hard")}, "`stiffness` of a Contact.*got 'hard'"),  # type: ignore[arg-type]
        ({"contact": 1e8}, r"`contact` of \w+ is a Contact\(…\).*got 1"),
        ({"film_limit": "thin"}, "`film_limit`.*got 'thin'"),
    ],
)
def test_bad_dimensions_are_refused(model, change, message):
    given = {"radius": R, "length": B, "clearance": C, "viscosity": MU} | change
    with pytest.raises(DiagramError, match=message):
        model(**given)


@pytest.mark.parametrize("cells", [(63, 16), (64, 15), (4, 16), (64, 1000), (64,), 64, (64.5, 16)])
def test_bad_cells_are_refused(cells):
    with pytest.raises(DiagramError, match="`cells` of FiniteBearing are two even numbers"):
        FiniteBearing(*SIZE, cells=cells)


def test_other_choices_are_refused():
    with pytest.raises(DiagramError, match="`cavitation` of LongBearing is one of"):
        LongBearing(*SIZE, cavitation="reynolds")
    with pytest.raises(DiagramError, match="`cavitation` of FiniteBearing is one of"):
        FiniteBearing(*SIZE, cavitation="floberg")
    for grooves in ([1.0, 2.0], [(1.0, -0.1)]):
        with pytest.raises(DiagramError, match="`grooves` of FiniteBearing are pairs"):
            FiniteBearing(*SIZE, grooves=grooves)  # type: ignore[arg-type]


def test_wrong_unit_is_refused():
    d = Diagram("wrong unit")
    bearing = d.add(ShortBearing(*SIZE), name="bearing")
    d.connect(d.add(Constant([1.0, 2.0], unit="mm"), name="offset"), bearing["position"])
    with pytest.raises(DiagramError, match=r"(?s)bearing\.position.*mm"):
        d.compile()
