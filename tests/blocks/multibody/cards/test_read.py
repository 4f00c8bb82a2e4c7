"""Mechanisms from folders of cards."""

import re
import warnings

import numpy as np
import pytest

from biella import BiellaWarning, DiagramError
from biella.blocks.multibody import System, mechanisms, read_s3d
from biella.blocks.multibody.cards import _read
from biella.blocks.multibody.system._rotations import rotation_about

from ..elements.formula import card_mechanism
from .card_sets import FIVE_BAR, SLIDER_CRANK, START, change, close, copy, run


@pytest.mark.filterwarnings("ignore:.*CoM:biella.BiellaWarning")
def test_slider_crank_is_the_one_described_by_hand(tmp_path):
    """Formulas of spring and damper, step(), weights along the axes; to rounding of 6000 steps."""
    cards = System.from_s3d(close(copy(tmp_path / "s")))
    found = run(cards, ("Rot1.angle", "Rot1.speed", "Pistone.x", "Biella.y"), 6.0)
    names = ("main.angle", "main.speed", "piston.x", "rod.y")
    by_hand = run(card_mechanism.build(), names, 6.0)
    for a, b in zip(found, by_hand, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)
    for t, row in card_mechanism.EXPECTED.items():
        if t <= 6:
            at = [values[t * 1000] for values in found[:3]]
            np.testing.assert_allclose(at, row, rtol=0, atol=2e-5)


def test_slider_crank_as_printed():
    cards = read_s3d(SLIDER_CRANK, mass_center="legacy")
    assert (cards.start, cards.end, cards.intervals) == (0.0, 15.0, 30000)
    assert cards.settings["tolODE"] == 1e-7 and cards.settings["Correzione"] == 1
    system = cards.system
    assert (system.name, [body.name for body in system.bodies]) == (
        "Manovellismo", ["Manovella", "Biella", "Pistone"],
    )  # fmt: skip
    assert [joint.kind for joint in system.joints] == ["revolute"] * 3 + ["prismatic"]
    report = system.report()
    assert report.freedom == 1
    assert str(system.assemble().gaps["Rot2"]) == "0.000731 m"  # 7.3e-4 m, as the sheet says
    assert system.bodies[2].com.tolist() == [0, 0, 0]


def test_five_bar_is_the_ready_mechanism():
    found = run(System.from_s3d(FIVE_BAR), ("Biella.position",), 2.0)[0]
    ready = mechanisms.five_bar()
    name = next(body.name for body in ready.bodies if body.mass == 195.0)
    expected = run(ready, (f"{name}.position",), 2.0)[0]
    # Both start from the same printed pose, which is open by 6e-10 m.
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=0, atol=1e-8)


def test_mass_center_is_legacy_or_physical():
    with pytest.warns(BiellaWarning, match=r"Inertial.s3d, line 25: the original program ignores"):
        System.from_s3d(SLIDER_CRANK)
    physical = System.from_s3d(SLIDER_CRANK, mass_center="physical")
    assert physical.bodies[2].com.tolist() == [-0.15, 0, 0]
    assert physical.bodies[2].inertia[1, 1] == 0.00378
    with pytest.raises(DiagramError, match="'legacy' or 'physical'"):
        System.from_s3d(SLIDER_CRANK, mass_center="center")  # type: ignore[arg-type]


def test_euler_parameters_keep_the_sign_of_the_card(tmp_path):
    """The crank with -e is the same crank: its q4 and qp4 change their sign, q1 does not."""
    folder = change(close(copy(tmp_path / "s")), START, "q4=0.", "q4=-0.")
    change(folder, START, "q7=-0.", "q7=0.")
    change(folder, "Force.s3d", "Fx=0", "Fx=q4-0.5")
    force = "Coppia.applied_force"
    turned = System.from_s3d(folder, mass_center="legacy")
    assert run(turned, (force,), 0.001)[0][0][0] == pytest.approx(-0.96587 - 0.5, abs=1e-3)
    as_printed = change(close(copy(tmp_path / "t")), "Force.s3d", "Fx=0", "Fx=q4-0.5")
    printed = System.from_s3d(as_printed, mass_center="legacy")
    assert run(printed, (force,), 0.001)[0][0][0] == pytest.approx(0.96587 - 0.5, abs=1e-3)


def test_velocities_are_those_of_the_euler_parameters(tmp_path):
    """All bodies at 3 rad/s about z, independently of joints: ė = ½ ω (-e3, 0, 0, e0)."""
    folder = copy(tmp_path / "s")
    (folder / "Connection.s3d").write_text("NumDyn3D ver. 7.0a\n")
    (folder / "SPDamp.s3d").unlink()
    e0, e3, w = 0.9658738845942, -0.259012816399, 3.0
    change(folder, START, "qp4=0.", f"qp4={-0.5 * w * e3!r}")
    change(folder, START, "qp7=0.", f"qp7={0.5 * w * e0!r}")
    crank = read_s3d(folder, mass_center="legacy").system.bodies[0]
    np.testing.assert_allclose(crank.angular_velocity, (0, 0, w), atol=1e-10)
    change(folder, START, "qp4=", "qp4=1")
    with pytest.raises(DiagramError, match="change the length of the Euler parameters"):
        System.from_s3d(folder, mass_center="legacy")


def test_start_time_shifts_the_formulas(tmp_path):
    folder = change(close(copy(tmp_path / "s")), "General.s3d", "TI          0.", "TI 3.")
    system = System.from_s3d(folder, mass_center="legacy")
    torque = run(system, ("Coppia.applied_torque",), 1.5)[0][:, 2]
    assert torque[900] == 50.0 and torque[1100] == 0.0  # step(4 - t) ends at 1 s


DRIVER = """NumDyn3D ver. 7.0a
begin(constants)
A=0.125
omega=3
end(constants)
begin(1)
position = q1-A*cos(omega*t)+A-.108
PSI_t = A*sin(omega*t)*omega
PSI_tt = A*cos(omega*t)*omega^2
PSI_q(1) = 1
PSI_qt(1) = 0
end(1)
"""


@pytest.mark.filterwarnings("error")
def test_driver(tmp_path):
    folder = change(close(copy(tmp_path / "s")), "General.s3d", "TE          15.", "TE 0.8")
    (folder / "Driving Pos.s3d").write_text(DRIVER.replace("-.108", "-0.1082291"))
    system = System.from_s3d(folder, mass_center="legacy")
    x = run(system, ("Manovella.x",), 0.8)[0]
    t = np.arange(len(x)) * 1e-3
    np.testing.assert_allclose(x, 0.125 * np.cos(3 * t) - 0.125 + 0.1082291, atol=1e-10)
    assert system.parameters()["driver 1.omega"].value == 3.0


def test_infeasible_drivers_are_noticed(tmp_path):
    """The sheet gives the time at which the sample asks for more than the crank can reach."""
    folder = change(copy(tmp_path / "s"), "General.s3d", "TE          15.", "TE 1")
    driver = (SLIDER_CRANK / "driver_example" / "Driving Pos.s3d").read_text()
    (folder / "Driving Pos.s3d").write_text(driver)
    with pytest.warns(BiellaWarning, match=r"Driving Pos.s3d, line 10: .* t = 0.871319 s"):
        System.from_s3d(folder, mass_center="legacy")
    (folder / "Driving Pos.s3d").write_text(driver.replace("+A-.108", "+A-.508"))
    with pytest.raises(DiagramError, match=r"Driving Pos.s3d, line 10: `driver 1` .* not close"):
        System.from_s3d(folder, mass_center="legacy")


@pytest.mark.parametrize(
    ("old", "new"),
    [("sin(omega*t)*omega", "cos(omega*t)*omega"), ("omega^2", "omega"),
     ("PSI_q(1) = 1", "PSIQ(1) = 2"), ("PSI_qt(1) = 0", "PSIqt(2) = t")],
)  # fmt: skip
def test_wrong_derivatives_are_noticed(tmp_path, old, new):
    folder = change(copy(tmp_path / "s"), "General.s3d", "TE          15.", "TE 0.8")
    (folder / "Driving Pos.s3d").write_text(DRIVER.replace(old, new))
    with pytest.warns(BiellaWarning, match=r"Driving Pos.s3d, line \d+: this is not the deriv"):
        System.from_s3d(folder, mass_center="legacy")


WRONG = [
    ("Connection.s3d", "type=2", "type=6", r"line 46: there is no joint of type 6"),
    ("Connection.s3d", "body2=1", "body2=4", r"line 9: `body2` is a body from 0 to 3, got 4"),
    ("Connection.s3d", "body2=1", "body2=0", r"ties `ground` to itself"),
    ("Connection.s3d", "Q1=0. 0. 1.", "Q1=0. 0. 2.", r"line 11: Q1 must be 1 away from P1"),
    ("Connection.s3d", "R1=0.  0.  1.", "R1=0.6 0. 0.8", r"line 51: Q1 - P1 and R1 - P1 must be"),
    ("Connection.s3d", "end(1)", "end(2)", r"line 16: `end\(2\)`: open is 1"),
    ("Connection.s3d", "begin(2)", "begin(1)", r"line 18: block 1 is there already"),
    ("Connection.s3d", "P1=0. 0. 0.", "P1=0. 0.", r"line 10: `P1` has 3 numbers, got 2"),
    ("Connection.s3d", "P1=0. 0. 0.", "P1=0. 0. zero", r"line 10: .*`zero` is none"),
    ("Connection.s3d", "NumDyn3D ver. 7.0a", "", r"line 5: the first line must be"),
    ("Connection.s3d", "type=1\n", "", r"line 5: block 1 has no `type`"),
    ("General.s3d", "NB          3", "NB 4", r"line 2: NB is 4, and the table"),
    ("General.s3d", "NB          3", "NB 999999999", r"line 2: NB is 999999999, and the table"),
    ("General.s3d", "1 |        Manovella", "² | Manovella", r"a body is `number \| name`"),
    ("General.s3d", "1 |        Manovella", "9" * 5000 + " | x", r"a body is `number \| name`"),
    ("Connection.s3d", "begin(1)", "begin(²)", r"line 5: the tag of a block is a whole number"),
    ("Connection.s3d", "begin(1)", f"begin({'1' * 5000})", r"line 5: the tag of a block is a"),
    ("Connection.s3d", "body2=1", "body2=²", r"line 9: `body2` is a whole number"),
    ("Force.s3d", "50*step(4-t)", "1" * 5000, r"line 13: `Tz`: .*a number of 5000 characters"),
    ("Force.s3d", "50*step(4-t)", "q" + "1" * 5000, r"line 13: `Tz`: there is no variable"),
    ("General.s3d", "TE          15.", "TE -1", r"line 4: TE must be later"),
    ("General.s3d", "ST          30000", "ST 0", r"line 5: ST must be positive"),
    ("Inertial.s3d", "mass=0.2", "mass=-1", r"line 3: body `Manovella` has mass -1"),
    ("Inertial.s3d", "0. 0.001 0.", "0. 1.0 0.", r"which no body has"),
    ("Inertial.s3d", "]", "", r"line 6: `inertia=\[` is not closed"),
    (START, "q4=1.", "q4=2.", r"line 41: q4 … q7 are Euler parameters of length 2"),
    (START, "q1=0.108", "q1=0.1\nq1=0.2", r"line 5: `q1` is there already"),
    (START, "q1=0.108", "q1=t", r"line 4: `q1`: `t` is not known here"),
    (START, "begin(3)", "begin(4)", r"`end\(3\)`: open is 4"),
    ("Force.s3d", "50*step(4-t)", "50*stop(4-t)", r"line 13: `Tz`: there is no function `stop`"),
    ("Force.s3d", "50*step(4-t)", "qpp4", r"line 13: `Tz`: `qpp4` is an acceleration"),
    ("Force.s3d", "50*step(4-t)", "q22", r"line 13: `Tz`: `q22`: 3 bodies have q1 … q21"),
    ("Force.s3d", "50*step(4-t)", "x", r"line 13: `Tz`: there is no variable `x`"),
    ("Force.s3d", "50*step(4-t)", "2^3^q1", r"line 13: `Tz`: a\^b\^c has no order"),
    ("Force.s3d", "50*step(4-t)", "1/0", r"line 13: `Tz`: .*no finite value"),
    ("Force.s3d", "type=1", "type=3", r"line 7: type is 1 \(global axes\) or 2"),
    ("Force.s3d", "body=1", "body=0", r"line 6: `body` is a body from 1 to 3, got 0"),
    ("SPDamp.s3d", "ConnectionID=1", "ConnectionID=9", r"line 31: there is no joint 9"),
    ("SPDamp.s3d", "ConnectionID=1", "ConnectionID=4", r"line 31: joint 4 is prismatic"),
    ("SPDamp.s3d", "ConnectionID=1", "ConnectionID=2", r"must be the same"),
    ("SPDamp.s3d", "L0=0.661", "L0=-1", r"line 5: `free_length` of `Molla` is -1 m"),
    ("QRTol.s3d", "ODEmethod = 2", "ODEmethod = two", r"QRTol.s3d, line 6: .*`two` is none"),
]


@pytest.mark.parametrize(("card", "old", "new", "message"), WRONG)
def test_bad_cards_are_named_with_file_and_line(tmp_path, card, old, new, message):
    folder = change(copy(tmp_path / "s"), card, old, new)
    with pytest.raises(DiagramError, match=message) as error:
        System.from_s3d(folder, mass_center="legacy")
    assert all(re.search(r"\.s3d", text) for text in error.value.problems)


def test_all_problems_are_listed_at_once(tmp_path):
    folder = change(copy(tmp_path / "s"), "Force.s3d", "50*step(4-t)", "foo(4)")
    change(folder, "SPDamp.s3d", "10*abs(q15-0.661)", "10*")
    change(folder, "Connection.s3d", "type=2", "type=7")
    with pytest.raises(DiagramError) as error:
        System.from_s3d(folder, mass_center="legacy")
    assert len(error.value.problems) == 3


def test_missing_cards_are_listed(tmp_path):
    with pytest.raises(DiagramError, match="is no folder"):
        System.from_s3d(tmp_path / "none")
    with pytest.raises(DiagramError) as error:
        System.from_s3d(tmp_path)
    assert len(error.value.problems) == 4


BEND = 0.5  # rad, between the shafts of the Cardan joint


def cardan_joint():
    """Two shafts, a cross and two bearings; the input shaft turns about x."""
    out = np.array([np.cos(BEND), np.sin(BEND), 0.0])
    s = System("Cardan", (0.0, 0.0, 0.0))
    turned = rotation_about((0.0, 0.0, 1.0), BEND)
    ahead = s.body("Ingresso", mass=1.0, inertia=(0.01, 0.02, 0.02))
    cross = s.body("Crociera", mass=0.1, inertia=0.001)
    behind = s.body("Uscita", mass=1.0, inertia=(0.01, 0.02, 0.02), rotation=turned)
    # The fork of the input is along z, perpendicular to both shafts.
    joints = [
        s.revolute("main", s.ground, ahead, at=(0, 0, 0), axis=(1, 0, 0)),
        s.revolute("fork", ahead, cross, at=(0, 0, 0), axis=(0, 0, 1)),
        s.revolute("yoke", cross, behind, at=(0, 0, 0), axis=turned[:, 1]),
    ]
    s.cylindrical("end", s.ground, behind, at=out, axis=out)
    s.torque("load", behind.marker("flange"), tuple(-2.0 * out))
    return s, joints


CARDAN = FIVE_BAR.parent / "cardan" / "Driving Pos.s3d"


@pytest.fixture
def few_looks(monkeypatch):
    """Try the motion of a fully driven mechanism at fewer times than a user would have it."""
    monkeypatch.setattr(_read, "LOOKS", 9)


@pytest.mark.filterwarnings("error:.*derivative")
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_cardan_driver_card_is_the_driver_by_hand(tmp_path, few_looks, sign):
    """q4 = cos(ωt/2) and q5 = sin(ωt/2), ω = 2, over 1.4 turns: e0 and e1 change their signs.

    `sign`: of the Euler parameters of the output shaft, which no driver names, and of the input
    shaft, whose driver is then of -q4 and -q5.
    """
    s, (main, *_) = cardan_joint()
    folder = s.to_s3d(tmp_path / "cards", end=4.4)
    driver = CARDAN.read_text()
    assert "position = q4-cos(1/2*omega*t)" in driver
    if sign < 0:
        change(folder, "Initial Configuration.s3d", "q4=1.0", "q4=-1.0")
        for old, new in (("= q4-", "= -q4-"), ("= q5-", "= -q5-"), ("(4) = 1", "(4) = -1"),
                         ("(5) = 1", "(5) = -1")):  # fmt: skip
            driver = driver.replace(old, new)
    (folder / "Driving Pos.s3d").write_text(driver)
    back = System.from_s3d(folder)
    assert back.report().freedom == 0
    s.driver("drive", main, "2*t")
    times = np.linspace(0.0, 4.4, 23)
    found, wanted = back.kinematics(times), s.kinematics(times)
    for name in ("main.angle", "end.angle", "yoke.angle_acceleration", "Uscita.angular_velocity"):
        # Constraints are closed to 1e-10, of which accelerations see some hundred times as much.
        np.testing.assert_allclose(found[name], wanted[name], rtol=0, atol=1e-8, err_msg=name)
    # The speed of the output, in closed form.
    ratio = np.cos(BEND) / (1 - np.sin(BEND) ** 2 * np.cos(2 * times - np.pi / 2) ** 2)
    np.testing.assert_allclose(np.abs(found["end.angle_speed"]), 2 * ratio, rtol=1e-8)
    names = ("main.angle", "end.angle", "end.angle_speed", "fork.torque")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BiellaWarning)  # reactions of redundant joints
        one, other = run(back, names, 4.4, step=5e-3), run(s, names, 4.4, step=5e-3)
    for name, x, y in zip(names, one, other, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-6 * np.abs(y).max(), err_msg=name)


def test_a_driver_of_euler_parameters_is_written_and_read_back_equal(tmp_path, few_looks):
    s, _ = cardan_joint()
    s.constraint("d0", "Ingresso.e0 - cos(w*t/2)", parameters={"w": 2.0})
    s.constraint("d1", "Ingresso.e1 - sin(w*t/2)", parameters={"w": 2.0})
    folder = s.to_s3d(tmp_path / "cards", end=4.4)
    text = (folder / "Driving Pos.s3d").read_text()
    assert "PSI_q(4)=1.0" in text and "PSI_q(5)=1.0" in text
    back = System.from_s3d(folder)
    again = System.from_s3d(back.to_s3d(tmp_path / "again", end=4.4))
    times = np.linspace(0.0, 4.4, 12)
    wanted = s.kinematics(times)
    for found in (back.kinematics(times), again.kinematics(times)):
        for name in ("main.angle", "end.angle", "end.angle_acceleration"):
            np.testing.assert_allclose(found[name], wanted[name], rtol=0, atol=1e-10, err_msg=name)


def test_wrong_derivatives_by_euler_parameters_warn(tmp_path, few_looks):
    s, _ = cardan_joint()
    folder = s.to_s3d(tmp_path / "cards", end=1.0)
    driver = CARDAN.read_text().replace("PSIQ(4) = 1", "PSIQ(4) = -1")
    (folder / "Driving Pos.s3d").write_text(driver)
    with pytest.warns(BiellaWarning, match="not the derivative of `position`.* -1 instead of 1"):
        System.from_s3d(folder)


def test_unknown_keys_and_missing_components_warn(tmp_path):
    folder = change(copy(tmp_path / "s"), "Force.s3d", "Fx=0", "color=3")
    with pytest.warns(BiellaWarning) as found:
        System.from_s3d(folder, mass_center="legacy")
    texts = [str(item.message) for item in found]
    assert any("line 8: `color` is not a key" in text for text in texts)
    assert any("Fx" in text and "missing: 0" in text for text in texts)


LONG = "9" * 5000


@pytest.mark.parametrize(
    ("card", "old", "new", "message"),
    [
        ("Force.s3d", "Fx=0", f"Fx=q{LONG}", r"line 8: `Fx`: .*no variable"),
        ("Force.s3d", "Fx=0", f"Fx={LONG}", r"line 8: `Fx`: .*"),
        ("Connection.s3d", "body1=1", f"body1={LONG}", "`body1` is a whole number"),
        ("Connection.s3d", "body1=1", "body1=²", "`body1` is a whole number"),
        ("General.s3d", "1 |        Manovella", f"{LONG} | x", r"a body is `number \| name`"),
        ("General.s3d", "1 |        Manovella", "² | x", r"a body is `number \| name`"),
        ("General.s3d", "NB          3", "NB 999999999", "NB is 999999999, and the table names"),
    ],
    ids=lambda value: value[:20],
)
def test_numbers_that_are_none_or_too_long_are_named(tmp_path, card, old, new, message):
    """Digits of other scripts, and more of them than Python turns into a number."""
    folder = change(close(copy(tmp_path / "s")), card, old, new)
    with pytest.raises(DiagramError, match=message):
        System.from_s3d(folder, mass_center="legacy")


@pytest.mark.parametrize("tag", [LONG, "²"])
def test_tags_that_are_no_numbers_are_named(tmp_path, tag):
    folder = close(copy(tmp_path / "s"))
    change(folder, "Inertial.s3d", "begin(1)", f"begin({tag})")
    change(folder, "Inertial.s3d", "end(1)", f"end({tag})")
    with pytest.raises(DiagramError, match="the tag of a block is a whole number"):
        System.from_s3d(folder, mass_center="legacy")


def test_tabs_separate_the_keys_of_the_general_card(tmp_path):
    folder = change(close(copy(tmp_path / "s")), "General.s3d", "NB          3", "NB\t3")
    assert len(System.from_s3d(folder, mass_center="legacy").bodies) == 3


def write_driver(tmp_path, *lines, constants="A=0.125"):
    folder = change(close(copy(tmp_path / "s")), "General.s3d", "TE          15.", "TE 0.1")
    text = ["NumDyn3D ver. 7.0a", "begin(constants)", constants, "end(constants)", "begin(1)"]
    (folder / "Driving Pos.s3d").write_text("\n".join([*text, *lines, "end(1)"]))
    return folder


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["where", "hypot", "floor", "lambda", "e", "x"])
def test_constants_may_have_the_names_of_other_functions(tmp_path, few_looks, name):
    folder = write_driver(
        tmp_path, f"position=q1-0.1082291-0.01*{name}*t^2", f"PSI_t=-0.02*{name}*t",
        f"PSI_tt=-0.02*{name}", "PSI_q(1)=1", constants=f"{name}=2",
    )  # fmt: skip
    system = System.from_s3d(folder, mass_center="legacy")
    assert run(system, ("Manovella.x",), 0.1)[0][-1] == pytest.approx(0.1082291 + 2e-4, abs=1e-9)


def test_every_key_of_a_driver_is_compared_with_its_position(tmp_path, few_looks):
    """What is wrong, what has no value, and what is missing, which is 0 in the original program."""
    folder = write_driver(
        tmp_path, "position=q1*(1+t)-0.1082291*(1+t)+0*q2", "PSI_t=7", "PSI_tt=sqrt(-1-t)",
        "PSI_q(2)=1",
    )  # fmt: skip
    with pytest.warns(BiellaWarning) as found:
        System.from_s3d(folder, mass_center="legacy")
    texts = "\n".join(str(item.message) for item in found)
    for part in (
        r"line 7: this is not the derivative of `position`.* it is 7 instead of",
        r"line 8: this has no finite value",
        r"line 9: this is not the derivative",
        r"line 5: block 1 has no `PSI_q\(1\)`: 0 in the original program",
        r"line 5: block 1 has no `PSI_qt\(1\)`: 0 in the original program",
    ):
        assert re.search(part, texts), part
    assert "PSI_qt(2)" not in texts


def test_a_key_that_cannot_be_read_is_not_missing(tmp_path):
    folder = write_driver(tmp_path, "position=q1-0.1", "PSI_t=1/0", "PSI_tt=0", "PSI_q(1)=1")
    with pytest.raises(DiagramError) as error:
        System.from_s3d(folder, mass_center="legacy")
    assert len(error.value.problems) == 1
