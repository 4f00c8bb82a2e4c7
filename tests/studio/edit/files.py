"""Files with diagrams, in many ways of writing them."""

import textwrap

from biella.cli._load import load_diagram
from biella.studio.edit._editor import Editor

LOOP = '''
    """A loop."""  # kept

    from biella import Diagram
    from biella.blocks import Gain, Integrator, Saturation, Sine, Sum
    from biella.blocks import Step as Jump


    GAIN = 3.0


    def diagram():
        # Settings.
        d = Diagram("loop", step=1e-3)  # a millisecond
        ref = d.add(Sine(frequency=2.0), "ref")

        # The controller.
        error = d.add(Sum("+-"), "error", u1=ref)   # odd   spacing
        p = d.add( Gain( 0.4 ), "p", u=error )
        drive = d.add(
            Saturation(
                -2,  # lowest
                upper=2.0,
            ),
            name='drive',
            inputs={"u": p},
        )
        plant = Integrator(initial = -0.5)
        d.add(plant, "plant", inputs=drive)
        d.connect(plant, error["u2"])
        d.connect("ref.y", d.add(Gain(GAIN), "watched"), d.add(Gain(1.0), "double"))
        d.add(Jump(at=0.1))
        push = d.input("push", default=0.5)
        d.add(Gain(k=1.0), "pushed", u=d.add(Gain(2 * 0.5), "nested", u=push))
        d.output("answer", plant)
        d.output("pushed out", "pushed.y")
        return d
'''

SHAPES = """
    from biella import Diagram, Subsystem
    from biella import blocks
    from biella.blocks import *
    import biella.blocks as b


    def make_gain(k):
        return Gain(k)


    def helper(d):
        return d.add(Gain(7.0), "helped")


    def inner():
        s = Diagram("inner")
        s.output("y", s.add(Gain(2.0), "g", u=s.input("u")))
        return Subsystem(s)


    def diagram():
        d = Diagram("shapes")
        ref = d.add(blocks.Constant(1.0), "ref")
        for n in range(2):
            d.add(Gain(1.0), f"loop{n}", u=ref)
        for n in range(1):
            d.add(Gain(1.0), "in for", u=ref)
        if True:
            d.add(Gain(1.0), "in if", u=ref)
        else:
            d.add(Gain(5.0), "in if", u=ref)
        with open(__file__):
            d.add(Gain(1.0), "in with", u=ref)
        [d.add(Gain(1.0), "in list", u=ref) for _ in range(1)]
        (lambda: d.add(Gain(1.0), "in lambda", u=ref))()
        d.add(Gain(1.0), "one", u=ref); d.add(Gain(1.0), "two", u=ref)
        d.add(make_gain(1.0), "made", u=ref)
        d.add(Gain(**{"k": 1.0}), "unpacked", u=ref)
        k = 2.0
        d.add(Gain(k), "variable", u=ref)
        d.add(Gain(1.0 + 1.0), "computed", u=ref)
        d.add(b.Gain(1.5), "aliased", u=ref)
        helper(d)
        d.connect(ref, "helped")
        d.connect(ref, d.add(inner(), "made inside")["u"])
        w = Diagram("written")
        w.output("y", w.add(Gain(2.5), "g", u=w.input("u", default=1.0)))
        d.add(Subsystem(w), "written inside", u=ref)
        d.chain(ref, d.add(Gain(1.0), "chained"))
        a = [[1.0], [0.0]]
        d.add(StateSpace([[-1.0, 0.5], [0.0, -2]], a, [[1.0, 0.0]], [[0.0]]), "ss", u=ref)
        d.add(StateSpace(A=[[-1.0]], B=[[1.0]], C=[[1.0]], D=[[0.0]]), u=ref)
        x = d.add(Gain(1.0), "again", u=ref)
        x = d.add(Gain(1.0), "and again", u=x)
        return d
"""


def write(folder, text):
    path = folder / "rig.py"
    path.write_text(textwrap.dedent(text).lstrip("\n"))
    return path


def open_editor(path):
    """Return an editor of a file, as it is after the studio has loaded it."""
    editor = Editor(path)
    editor.take(path.read_bytes(), load_diagram(path))
    return editor
