"""Shapes in a URDF file: `<visual>` of links, and the materials that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from ....errors import DiagramError
from ..system._visuals import Visual
from ._element import Element, doubt, read_origin

Color = tuple[float, ...]
_SIZES: dict[str, tuple[str, ...]] = {
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "sphere": ("radius",),
    "mesh": ("scale",),
}


def read_materials(root: Element) -> dict[str, Color]:
    """Return the colors of the materials of a robot, by name."""
    found = {}
    for element in root.children:
        if element.tag == "material" and (color := _read_color(element)) is not None:
            found[element.attributes.get("name", "")] = color
    return found


def read_visuals(link: Element, materials: Mapping[str, Color], path: Path) -> Iterator[Visual]:
    """Yield the shapes of a link. One that cannot be read is left out with a warning."""
    for element in link.children:
        if element.tag != "visual":
            continue
        try:
            visual = _read_visual(element, materials, path)
        except DiagramError as error:
            doubt(f"a shape is not drawn: {' '.join(error.problems)}")
            continue
        if visual is not None:
            yield visual


def _read_visual(element: Element, materials: Mapping[str, Color], path: Path) -> Visual | None:
    geometry = element.child("geometry")
    shapes = geometry.children if geometry is not None else ()
    shape = next((one for one in shapes if one.tag in _SIZES), None)
    if shape is None:
        return None  # such as a capsule of another program
    kind: Literal["box", "cylinder", "sphere", "mesh"] = shape.tag  # type: ignore[assignment]
    if kind == "mesh":
        size, file = shape.numbers("scale", (1.0, 1.0, 1.0)), shape.text("filename")
    else:
        widths = (0.0, 0.0, 0.0) if kind == "box" else (0.0,)
        for name in _SIZES[kind]:
            shape.text(name)  # it must be there
        size = tuple(one for name in _SIZES[kind] for one in shape.numbers(name, widths))
        file = ""
        if not all(one > 0.0 for one in size):
            raise DiagramError(f"{shape.place}: the sizes of <{kind}> must be above 0, got {size}.")
    position, rotation = read_origin(element, "a shape")
    return Visual(
        kind, size, position, rotation, _find_color(element, materials), file,
        path if file else None,
    )  # fmt: skip


def _find_color(element: Element, materials: Mapping[str, Color]) -> Color | None:
    material = element.child("material")
    if material is None:
        return None
    return _read_color(material) or materials.get(material.attributes.get("name", ""))


def _read_color(material: Element) -> Color | None:
    color = material.child("color")
    if color is None:
        return None
    given = color.numbers("rgba", (0.5, 0.5, 0.5, 1.0))
    return tuple(min(max(one, 0.0), 1.0) for one in given)
