"""What the README and the guides say is true."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import pkgutil
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import biella
import biella.blocks
from biella import Diagram, simulate
from biella.blocks import Expression, Integrator, Playback
from biella.blocks.authoring import NativeBlock

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks_of(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


@pytest.mark.engine
def test_the_user_code_of_the_readme_makes_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = blocks_of("python")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 25
    exec(code, {})
    assert (tmp_path / "speed.png").exists() and (tmp_path / "speed.fmu").exists()
    assert "shaft speed" in capsys.readouterr().out


def test_the_main_job_of_the_readme_is_the_demo():
    """tests/test_demo.py runs it; .ci/run runs the line itself, in a fresh clone."""
    run_it, test_it = blocks_of("sh")[:2]
    command = run_it.strip().rsplit("&& .venv/bin/biella ", 1)[1]
    assert shlex.split(command) == ["demo"]
    assert "pytest" in test_it


def test_links_and_pictures_of_the_documents_exist():
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_gallery_is_up_to_date_and_has_a_picture_of_every_example():
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "gallery.py")
    assert spec is not None and spec.loader is not None
    gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery)
    text = (ROOT / "docs" / "gallery.md").read_text()
    assert text == gallery.write_gallery(), "python docs/gallery.py"
    for example in (ROOT / "examples").glob("*.py"):
        assert text.count(f"](../examples/{example.name})") == 2, example.name


def test_the_reference_is_up_to_date_and_has_every_block(reference):
    files = reference.write_reference()
    kept = {f"reference/{path.name}" for path in (ROOT / "docs" / "reference").iterdir()}
    by_hand = {f"reference/{name}" for name in reference.BY_HAND}
    assert kept - by_hand == set(files), "run: python docs/reference.py"
    for path, content in files.items():
        assert (ROOT / "docs" / path).read_text() == content, "run: python docs/reference.py"
    text = "".join(files.values())
    for name, block in reference.exported().items():
        assert f"\n## {name}\n" in text
        assert inspect.cleandoc(block.__doc__).partition("\n")[0].rstrip(":") in text
    for name in ("Diagram", "simulate", "Result", "System", "System.revolute", "Result.plot"):
        assert f"# {name}\n\n```py\n{name}(" in files["reference/python.md"]
    drawn = {path.stem for path in (ROOT / "docs" / "pictures" / "reference").glob("*.png")}
    assert drawn == set(re.findall(r"pictures/reference/(\w+)\.png", text))
    without = set(reference.exported()) - drawn
    assert without == {
        "Assertion", "ExternalInput", "RealTime", "Record", "Scope", "Stop", "Terminator"
    }  # fmt: skip


@pytest.mark.engine
def test_pictures_of_the_reference_are_drawn_by_running_the_block(reference):
    block = biella.blocks.Saturation(-1.0, 2.0)
    picture = np.asarray(reference.draw("Saturation", block).convert("RGB"), dtype=int)
    kept = np.asarray(
        Image.open(ROOT / "docs/pictures/reference/Saturation.png").convert("RGB"), dtype=int
    )
    assert picture.shape == kept.shape
    # Fonts may differ from machine to machine; the curve does not.
    assert (np.abs(picture - kept).max(axis=2) > 60).mean() < 0.02


@pytest.mark.filterwarnings("ignore:the estimated error")  # of coarse steps, and real
@pytest.mark.engine
@pytest.mark.parametrize(
    ("solver", "part"),
    [("euler", 0), ("heun", 1 / 2), ("rk3", 1 / 6), ("rk4", 1 / 6), ("dopri5", 0.131),
     ("trapezoidal", 1 / 2), ("backward_euler", 1)],
)  # fmt: skip
@pytest.mark.parametrize("events", ["tick", "locate"])
def test_a_jump_of_a_formula_costs_what_the_guide_says(solver, part, events):
    """docs/guides/diagrams.md, in parts of step · height; what runs at ticks has no such error.

    Where events are located, none has it.
    """
    step, height = 0.01, 50.0
    formula = f"where(t < 1, {height}, 0)"
    made = {
        "formula": Expression(formula),
        "line": Playback([0, 1, 1, 2], [height, height, 0, 0]),
        "sampled": Expression(formula),
        "held": Playback([0, 1], [height, 0], interpolation="hold"),
    }
    d = Diagram("jump", step=step, solver=solver, events=events)
    for name, block in made.items():
        period = step if name == "sampled" else None
        d.add(Integrator(), f"of {name}", inputs=d.add(block, name, period=period))
    result = simulate(d, 2.0)
    crossed = ("formula", "line") if events == "tick" else ()
    for name in made:
        off = abs(result[f"of {name}"][-1] - height) / (step * height)
        assert off == pytest.approx(part if name in crossed else 0, abs=1e-3)


def test_lists_and_tables_stand_apart():
    """Markdown of the site requires an empty line before them; others do without."""
    joined = []
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(r"^( *)```.*?^\1```$", "", document.read_text(), flags=re.S | re.M)
        lines = text.splitlines()
        for before, line in itertools.pairwise(lines):
            for start in (r"[-*] ", r"1\. ", r"\|"):
                plain = before.strip() and not re.match(rf"\s*(?:{start})|\s|#", before)
                if re.match(start, line) and plain:
                    joined.append(f"{document.name}: {line[:60]}")
    assert joined == []


SEE = re.compile(r"\b[Ss]ee(?: also)?\s+`([^`\s]+)`")
DOTTED = re.compile(r"`((?:biella|[A-Z]\w+)\.[\w.]+)`")


def test_the_reference_has_public_paths_only(reference):
    for page, text in reference.write_reference().items():
        assert not re.findall(r"\b\w+\._(?!_)\w+", text), page


def test_cross_references_of_the_reference_are_links(reference):
    """Each "see `X`" leads to a section; what has none is left without a link, and is dead."""
    files = {
        path: text for path, text in reference.write_reference().items() if path != "reference.md"
    }
    dead = [f"{path}: {name}" for path, text in files.items() for name in SEE.findall(text)]
    assert dead == []
    linked = {
        (path, target)
        for path, text in files.items()
        for target in re.findall(r"\b[Ss]ee(?: also)?\s+\[`[^`]+`\]\(([^)]+)\)", text)
    }
    assert len(linked) > 20
    for path, target in linked:
        page, _, anchor = target.partition("#")
        headings = re.findall(r"^##+ (.+)$", files[f"reference/{page}"], re.M)
        assert anchor in [h.lower().replace(".", "") for h in headings], f"{path}: {target}"
    # A member of the same class is meant before anything else of that name.
    python = files["reference/python.md"]
    assert "see [`linearize`](python.md#systemlinearize)" in python
    assert "see [`multibody.EndStop`](python.md#biellablocksmultibodyendstop)" in python


def modules():
    for found in pkgutil.walk_packages(biella.__path__, "biella."):
        if not found.name.endswith(("__main__", "libbiella")):
            yield importlib.import_module(found.name)


def docstrings(module):
    """Yield each docstring of a module, the class that it belongs to, and the name to show."""
    yield module.__doc__ or "", None, module.__name__
    for name, item in list(vars(module).items()):
        if getattr(item, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(item):
            yield item.__doc__ or "", None, f"{module.__name__}.{name}"
        elif isinstance(item, type):
            yield item.__doc__ or "", item, f"{module.__name__}.{name}"
            for own, member in list(vars(item).items()):
                function = getattr(member, "fget", None) or getattr(member, "__func__", member)
                if inspect.isfunction(function):
                    yield function.__doc__ or "", item, f"{module.__name__}.{name}.{own}"


def follow(start, parts):
    for part in parts:
        if isinstance(start, type) and any(
            part in getattr(base, "__annotations__", {}) for base in start.__mro__
        ):
            return True
        if not hasattr(start, part) and inspect.ismodule(start):
            try:
                importlib.import_module(f"{start.__name__}.{part}")
            except ImportError:
                return False
        if not hasattr(start, part):
            return False
        start = getattr(start, part)
    return True


def test_names_that_docstrings_and_guides_refer_to_exist():
    """See `X`, `Class.member` and `biella.path.of` are names that a reader can look up."""
    found = list(modules())
    multibody = importlib.import_module("biella.blocks.multibody")
    public: dict[str, set[type]] = {}
    for module in found:
        for name, item in vars(module).items():
            if isinstance(item, type) and not name.startswith("_"):
                public.setdefault(name, set()).add(item)

    def resolves(name, *places):
        first, *rest = parts = name.rstrip(".").removesuffix("()").split(".")
        if first == "biella":
            return follow(biella, rest)
        if any(follow(item, rest) for item in public.get(first, ())):
            return True
        return any(follow(place, parts) for place in places if place is not None)

    everywhere = (biella, biella.blocks, multibody)
    dead = []
    for module in found:
        package = sys.modules[module.__name__.rpartition(".")[0]]
        for text, owner, where in docstrings(module):
            for name in {*SEE.findall(text), *DOTTED.findall(text)}:
                if not resolves(name, owner, module, package, *everywhere):
                    dead.append(f"{where}: {name}")
    pages = [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs").glob("[egh]*/*.md"),
    ]
    for page in pages:
        text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(), flags=re.S | re.M)
        for name in {*SEE.findall(text), *DOTTED.findall(text)}:
            if not resolves(name, *everywhere):
                dead.append(f"{page.name}: {name}")
    assert sorted(dead) == []


def test_every_block_is_in_the_list_of_blocks():
    text = (ROOT / "docs" / "reference" / "blocks.md").read_text()
    missing = [
        name
        for name in biella.blocks.__all__
        if isinstance(getattr(biella.blocks, name), type)
        and issubclass(getattr(biella.blocks, name), NativeBlock)
        and f"`{name}`" not in text
    ]
    assert missing == []
