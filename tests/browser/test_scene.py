"""The scene of a mechanism in Chromium: forces, journals, shapes, and bodies that are pushed."""

import importlib.util
import struct
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from biella import simulate
from biella.scheduler.compile._flatten import flatten
from biella.studio._mechanism import show_mechanisms
from biella.studio._page_file import write_page_file
from biella.studio._result import ResultSession
from biella.studio._session import LiveSession

from ..studio.client import serving, write_rig

pytestmark = [pytest.mark.engine, pytest.mark.slow]

ELEMENT, LOAD = "#00795A", "#D55E00"  # colors of arrows

PENDULUM = """
    from biella import Diagram
    from biella.blocks.multibody import System

    def diagram():
        s = System("pendulum", planar=True)
        rod = s.body("rod", mass=2.0, inertia=0.05, com=(0.0, -0.6))
        rod.marker("tip", (0.0, -0.6))
        pivot = s.revolute("pivot", s.ground, rod, at=(0.0, 0.0))
        s.spring("coil", s.ground.marker("wall", (-0.6, -0.6)), rod.marker("eye", (0.0, -0.6)),
                 stiffness=30.0, free_length=0.2)
        s.friction("drag", pivot, viscous=2.0)
        d = Diagram("pendulum", step=1e-3)
        d.add(s.block(), name="plant")
        return d
"""

ROTOR = """
    from biella import Diagram
    from biella.blocks import ShortBearing
    from biella.blocks.multibody import System

    def diagram():
        s = System("rotor", gravity=(0.0, -9.81), planar=True)
        rotor = s.body("rotor", mass=1.0, inertia=0.01, angular_velocity=100.0)
        film = ShortBearing(radius=0.02, length=0.01, clearance=4e-5, viscosity=0.01)
        s.bearing("film", rotor.marker("journal"), s.ground.marker("bush"), film)
        d = Diagram("rotor", step=1e-4)
        d.add(s.block(), name="plant")
        return d
"""

ROBOT = """<robot name="robot"><link name="base"/>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><mesh filename="arm.stl"/></geometry>
      <material name="m"><color rgba="0 1 0 1"/></material></visual></link>
  <joint name="pin" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""


@pytest.fixture
def opened(browser, tmp_path):
    """Return a function that opens a diagram in the browser."""
    servers = []

    def open_text(text):
        session = LiveSession(write_rig(tmp_path, text))
        session.load()
        server = serving(session)
        browser.complaints.clear()
        browser.open(server.__enter__().url)
        servers.append(server)
        browser.wait("document.querySelector('[data-testid=mechanism]') !== null")
        browser.wait("document.querySelector('[data-testid=run]') !== null")
        return session

    yield open_text
    browser.do("localStorage.clear()")
    browser.open("about:blank")
    for server in servers:
        server.__exit__(None, None, None)
    assert browser.complaints == []


def read_colors(browser, path):
    """Return what the scene shows, as rows of pixels of red, green and blue."""
    left, top, width, height = browser.wait(
        "(() => { const r = document.querySelector('[data-testid=mechanism] canvas')"
        "?.getBoundingClientRect(); return r?.width ? [r.x, r.y, r.width, r.height] : null; })()"
    )
    browser.picture(path)
    image = matplotlib.image.imread(path)[..., :3]
    return image[int(top) : int(top + height), int(left) : int(left + width)]


def count_color(browser, path, color):
    wanted = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    return int((np.abs(read_colors(browser, path) - wanted).max(axis=2) < 0.02).sum())


def wait_color(browser, path, color, most=None):
    """Wait until more than a few pixels have a color, or at most some have."""
    for _ in range(100):
        count = count_color(browser, path, color)
        if count > 60 if most is None else count <= most:
            return
        browser.do("new Promise(resolve => setTimeout(resolve, 100))")
    raise AssertionError(f"{count} pixels are {color}")


def start(browser, seconds=0.05):
    browser.click("[data-testid=run]")
    time = "parseFloat(document.querySelector('[data-testid=time]').textContent)"
    browser.wait(f"{time} > {seconds}")


def test_forces_are_shown_by_groups_with_a_scale(browser, opened, tmp_path):
    opened(PENDULUM)
    start(browser)
    picture = tmp_path / "seen.png"
    assert count_color(browser, picture, ELEMENT) == 0
    browser.click("[data-testid=show-forces]")
    wait_color(browser, picture, ELEMENT)
    scale = "document.querySelector('[data-testid=force-scale]')?.textContent"
    assert browser.wait(scale).endswith(" N")
    browser.click("[data-testid=forces] [data-group=element]")
    # The color is left in the legend alone.
    browser.wait("document.querySelector('[data-group=element]').ariaPressed === 'false'")
    wait_color(browser, picture, ELEMENT, most=90)
    browser.click("[data-testid=show-forces]")
    wait_color(browser, picture, ELEMENT, most=0)


def find_rod(browser):
    """Press the pointer on the rod; return where."""
    left, top, width, height = browser.do(
        "(() => { const r = document.querySelector('[data-testid=mechanism] canvas')"
        ".getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()"
    )
    for share in np.linspace(0.2, 0.8, 25):
        at = left + width * share, top + 0.4 * height
        browser.mouse("mouseMoved", *at)
        browser.mouse("mousePressed", *at, button="left", buttons=1, clickCount=1)
        if browser.do("document.querySelector('[data-testid=push-force]') !== null"):
            return at
        browser.mouse("mouseReleased", *at, button="left", clickCount=1)
    raise AssertionError("no body was found")


def test_a_body_is_pushed_by_a_drag_and_let_go(browser, opened):
    session = opened(PENDULUM)
    start(browser)
    browser.click("[data-testid=show-push]")
    x, y = find_rod(browser)
    for k in range(1, 9):
        browser.mouse("mouseMoved", x + 8 * k, y, button="left", buttons=1)
    shown = browser.wait(
        "(t => t && t !== '0 N' ? t : null)"
        "(document.querySelector('[data-testid=push-force]')?.textContent)"
    )
    waited = "new Promise(resolve => setTimeout(resolve, 100))"
    for _ in range(100):
        browser.do(waited)
        pushed = session.run["plant.push.fx"]
        if f"{pushed:.3g}" == shown.removesuffix(" N"):
            break
    assert session.run["plant.push.body"] == 1.0 and pushed > 0.0
    assert f"{pushed:.3g}" == shown.removesuffix(" N")
    assert session.run["plant.push.fy"] == pytest.approx(0.0, abs=1e-9 * pushed)
    browser.mouse("mouseReleased", x + 64, y, button="left", clickCount=1)
    browser.wait("document.querySelector('[data-testid=push-force]') === null")
    for _ in range(100):
        if session.run["plant.push.body"] == 0.0:
            return
        browser.do(waited)
    raise AssertionError("the body was not let go")


def test_a_body_is_pushed_from_the_keyboard(browser, opened):
    session = opened(PENDULUM)
    start(browser)
    browser.click("[data-testid=show-push]")
    browser.wait("document.querySelector('[data-testid=push-panel]') !== null")
    browser.do("document.querySelector('[aria-label=\"Force along x in N\"]').focus()")
    browser.press("a", modifiers=2)
    browser.type("7.5")
    browser.press("Enter")
    browser.do("document.querySelector('[data-testid=push-on]').focus()")
    browser.press("Enter", text="\r")
    pressed = "document.querySelector('[data-testid=push-on]').ariaPressed"
    browser.wait(f"{pressed} === 'true'")
    for _ in range(100):
        if session.run["plant.push.fx"] == 7.5:
            break
        browser.do("new Promise(resolve => setTimeout(resolve, 100))")
    assert session.run["plant.push.fx"] == 7.5 and session.run["plant.push.body"] == 1.0
    # The panel lets go when it is closed.
    browser.click("[data-testid=show-push]")
    for _ in range(100):
        if session.run["plant.push.body"] == 0.0:
            return
        browser.do("new Promise(resolve => setTimeout(resolve, 100))")
    raise AssertionError("the body was not let go")


def test_a_journal_has_the_film_of_the_newest_row(browser, opened):
    session = opened(ROTOR)
    start(browser, 0.01)
    browser.click("[data-testid=pause]")
    browser.wait("document.querySelector('[data-testid=state]').textContent === 'paused'")
    rows = session.view.rows
    columns = session.view.find_columns(["plant.film.offset", "plant.film.film"])
    wanted = seen = None
    for _ in range(100):  # rows, and a tick that was under way, arrive after the pause
        _, found = rows.read(rows.end - 1, rows.end, columns)
        if found.size:
            x, y, film = found[:, 0]
            wanted = [f"ε{np.hypot(x, y) / 4e-5:.3g}", f"{film * 1e6:.3g} µm"]
            facts = "[data-testid=journal-facts] div"
            first = (browser.text(facts) or "").replace(" ", "")
            seen = [first, browser.text(f"{facts}:nth-child(2) dd")]
        if seen is not None and seen == wanted:
            return
        browser.do("new Promise(resolve => setTimeout(resolve, 100))")
    raise AssertionError(f"the page shows {seen}, not {wanted}")


def test_a_mesh_of_a_robot_is_drawn(browser, opened, tmp_path):
    corners = np.array([[0, 0, 0], [0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]])
    faces = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]
    data = b"".join(
        struct.pack("<12fH", 0, 0, 0, *corners[list(face)].ravel(), 0) for face in faces
    )
    (tmp_path / "arm.stl").write_bytes(b"\0" * 80 + struct.pack("<I", len(faces)) + data)
    (tmp_path / "robot.urdf").write_text(ROBOT)
    opened(f"""
    from biella import Diagram
    from biella.blocks.multibody import System

    def diagram():
        d = Diagram("robot", step=1e-3)
        d.add(System.from_urdf({str(tmp_path / "robot.urdf")!r}).block(), name="plant")
        return d
    """)

    def green():
        red, green, blue = np.moveaxis(read_colors(browser, tmp_path / "seen.png"), 2, 0)
        return ((green > 0.3) & (red < 0.1) & (blue < 0.1)).sum()

    for _ in range(100):
        if green() > 500:
            return
        browser.do("new Promise(resolve => setTimeout(resolve, 100))")
    raise AssertionError("no mesh is seen")


def test_a_page_file_has_the_recorded_forces(browser, tmp_path):
    source = Path(__file__).parents[2] / "examples" / "04_slider_crank.py"
    spec = importlib.util.spec_from_file_location("slider_crank_of_scene", source)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    d = example.diagram()
    model = d.compile(flat=show_mechanisms(flatten(d)))
    simulate(model, 0.5, record=["*"], out=tmp_path / "run.h5")
    write_page_file(ResultSession(tmp_path / "run.h5", source), tmp_path / "run.html")
    browser.complaints.clear()
    browser.open((tmp_path / "run.html").as_uri())
    browser.click("[data-testid=show-forces]")
    left, top, width, height = browser.wait(
        "(() => { const r = document.querySelector('.u-over')?.getBoundingClientRect();"
        "return r?.width ? [r.x, r.y, r.width, r.height] : null; })()"
    )
    browser.mouse("mouseMoved", left + 0.5 * width, top + 0.5 * height)
    browser.wait("document.querySelector('[data-testid=force-scale]') !== null")
    wait_color(browser, tmp_path / "seen.png", "#0072B2")
    assert browser.complaints == []
    browser.do("localStorage.clear()")
    browser.open("about:blank")
