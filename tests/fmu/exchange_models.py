"""The FMUs for model exchange of ``exchange_models.c``: compiled and packed, in FMI 2.0 and 3.0."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from specimen import compile_specimen

from biella.fmu.importer._archive import platform_names


@dataclass(frozen=True)
class Variable:
    """A variable; its value reference is its place in the list."""

    name: str
    type: str = "Real"
    causality: str = "local"
    start: str | None = None
    variability: str | None = None
    derivative_of: str | None = None
    depends: tuple[str, ...] | None = None


def _v(name: str, *rest: str | None, **more: object) -> Variable:
    return Variable(name, *rest, **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Model:
    """A model of ``exchange_models.c``."""

    variables: tuple[Variable, ...]
    indicators: int = 0

    def find(self, name: str) -> int:
        """Return the value reference of a variable."""
        return next(n for n, v in enumerate(self.variables) if v.name == name)


MODELS = {
    "BALL": Model(
        (
            _v("h", "Real", "output", "1", depends=("h",)),
            _v("v", "Real", "output", "0", derivative_of="h", depends=("v",)),
            _v("a", derivative_of="v", depends=()),
            _v("g", "Real", "parameter", "9.81", "tunable"),
            _v("e", "Real", "parameter", "0.7", "fixed"),
            _v("bounces", "Integer", "output", None, "discrete", depends=()),
        ),
        indicators=1,
    ),
    "OSCILLATOR": Model(
        (
            _v("x0", "Real", "output", "2", depends=("x0",)),
            _v("x1", "Real", "output", "0", derivative_of="x0", depends=("x1",)),
            _v("der(x1)", derivative_of="x1", depends=("x0", "x1")),
            _v("mu", "Real", "parameter", "1", "fixed"),
        )
    ),
    "STIFF": Model(
        (
            _v("x", "Real", "output", "1", depends=("x",)),
            _v("der(x)", derivative_of="x", depends=("x",)),
            _v("k", "Real", "parameter", "1e4", "fixed"),
        )
    ),
    "SAMPLER": Model(
        (
            _v("u", "Real", "input", "0"),
            _v("y", "Real", "output", None, "discrete", depends=()),
            _v("count", "Integer", "output", None, "discrete", depends=()),
            _v("period", "Real", "parameter", "0.07", "fixed"),
        )
    ),
    "LAG": Model(
        (
            _v("u", "Real", "input", "0"),
            _v("x", "Real", "local", "1"),
            _v("y", "Real", "output", depends=("u", "x")),
            _v("der(x)", derivative_of="x", depends=("u", "x")),
            _v("k", "Real", "parameter", "0.5", "fixed"),
        )
    ),
    "CHAIN": Model(
        (
            _v("in", "Boolean", "input", "false", "discrete"),
            _v("out", "Boolean", "output", None, "discrete", depends=()),
            _v("x", "Real", "output", "0", depends=("x",)),
            _v("rate", "Real", "parameter", "1", "fixed"),
            _v("level", "Real", "parameter", "1", "fixed"),
            _v("passes", "Boolean", "parameter", "false", "fixed"),
            _v("count", "Integer", "output", None, "discrete", depends=()),
            _v("der(x)", derivative_of="x", depends=()),
        ),
        indicators=1,
    ),
    "RECORDER": Model(
        (
            _v("u", "Real", "input", "0"),
            _v("x", "Real", "output", "0", depends=("x",)),
            *(
                _v(name, "Real", "output", None, "discrete", depends=())
                for name in ("steps", "repeats", "at", "last_x", "last_u")
            ),
            _v("der(x)", derivative_of="x", depends=("u",)),
            _v("period", "Real", "parameter", "1e300", "fixed"),
            _v("events", "Real", "local", None, "discrete"),
        )
    ),
    "SCALED": Model(
        (
            _v("a", "Real", "output", "1e-9", depends=("a",)),
            _v("da", "Real", "local", "0", derivative_of="a", depends=("da",)),
            _v("b", "Real", "output", "1e6", depends=("b",)),
            _v("db", "Real", "local", "0", derivative_of="b", depends=("db",)),
            _v("c", "Real", "output", "1e-9", depends=("c",)),
            _v("der(da)", derivative_of="da", depends=("a",)),
            _v("der(db)", derivative_of="db", depends=("b",)),
            _v("der(c)", derivative_of="c", depends=("c",)),
            _v("declares", "Real", "parameter", "1", "fixed"),
            _v("at", "Real", "parameter", "1e300", "fixed"),
            _v("size", "Real", "output", None, "discrete", depends=()),
        )
    ),
    "ODD": Model(
        (
            _v("x", "Real", "output", "0", depends=("x",)),
            _v("trouble", "Integer", "parameter", "0", "fixed"),
            _v("at", "Real", "parameter", "1e300", "fixed"),
            _v("count", "Integer", "output", None, "discrete", depends=()),
            _v("der(x)", derivative_of="x", depends=()),
        ),
        indicators=1,
    ),
}
TROUBLE = {
    name: n
    for n, name in enumerate(
        ("none", "past", "endless", "ends", "step_ends", "step_events", "zero", "discards",
         "states_error", "update_error", "crashes", "no_number")
    )
}  # fmt: skip


def describe(name: str, version: int, flags: str) -> str:
    """Return modelDescription.xml."""
    return (_describe_fmi3 if version == 3 else _describe_fmi2)(name, MODELS[name], flags)


def _initial(variable: Variable) -> str:
    held = variable.causality in ("input", "parameter")
    return ' initial="exact"' if variable.start is not None and not held else ""


def _attributes(variable: Variable) -> str:
    variability = variable.variability or ("continuous" if variable.type == "Real" else "discrete")
    return f'causality="{variable.causality}" variability="{variability}"{_initial(variable)}'


def _describe_fmi2(name: str, model: Model, flags: str) -> str:
    lines, outputs, derivatives = [], [], []
    for n, v in enumerate(model.variables):
        start = "" if v.start is None else f' start="{v.start}"'
        of = "" if v.derivative_of is None else f' derivative="{model.find(v.derivative_of) + 1}"'
        lines.append(
            f'<ScalarVariable name="{v.name}" valueReference="{n}" {_attributes(v)}>'
            f"<{v.type}{start}{of}/></ScalarVariable>"
        )
        needs = " ".join(str(model.find(d) + 1) for d in v.depends or ())
        unknown = f'<Unknown index="{n + 1}" dependencies="{needs}"/>'
        if v.causality == "output":
            outputs.append(unknown)
        if v.derivative_of is not None:
            derivatives.append(unknown)
    initial = {
        f'<Unknown index="{n + 1}"/>': n
        for n, v in enumerate(model.variables)
        if (v.causality == "output" and v.start is None) or (v.derivative_of and v.start is None)
    }
    lists = ""
    if outputs:
        lists += f"<Outputs>{''.join(outputs)}</Outputs>"
    if derivatives:
        lists += f"<Derivatives>{''.join(derivatives)}</Derivatives>"
    if initial:
        lists += f"<InitialUnknowns>{''.join(initial)}</InitialUnknowns>"
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="{name}" guid="{{{name}}}"
  numberOfEventIndicators="{model.indicators}">
<ModelExchange modelIdentifier="{name}" {flags}/>
<ModelVariables>{"".join(lines)}</ModelVariables>
<ModelStructure>{lists}</ModelStructure>
</fmiModelDescription>
"""


_FMI3_TYPES = {"Real": "Float64", "Integer": "Int32", "Boolean": "Boolean"}


def _describe_fmi3(name: str, model: Model, flags: str) -> str:
    lines = ['<Float64 name="time" valueReference="100" causality="independent"'
             ' variability="continuous"/>']  # fmt: skip
    structure: dict[str, list[str]] = {
        "Output": [],
        "ContinuousStateDerivative": [],
        "InitialUnknown": [],
    }
    for n, v in enumerate(model.variables):
        kind = _FMI3_TYPES[v.type]
        start = "" if v.start is None else f' start="{v.start}"'
        of = "" if v.derivative_of is None else f' derivative="{model.find(v.derivative_of)}"'
        lines.append(f'<{kind} name="{v.name}" valueReference="{n}" {_attributes(v)}{start}{of}/>')
        needs = " ".join(str(model.find(d)) for d in v.depends or ())
        unknown = f'valueReference="{n}" dependencies="{needs}"/>'
        if v.causality == "output":
            structure["Output"].append(f"<Output {unknown}")
        if v.derivative_of is not None:
            structure["ContinuousStateDerivative"].append(f"<ContinuousStateDerivative {unknown}")
        if (v.causality == "output" or v.derivative_of) and v.start is None:
            structure["InitialUnknown"].append(f'<InitialUnknown valueReference="{n}"/>')
    indicators = []
    for n in range(model.indicators):
        lines.append(f'<Float64 name="z{n}" valueReference="{50 + n}" causality="local"'
                     ' variability="continuous"/>')  # fmt: skip
        indicators.append(f'<EventIndicator valueReference="{50 + n}"/>')
    lists = "".join("".join(items) for items in structure.values()) + "".join(indicators)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="{name}" instantiationToken="{{{name}}}">
<ModelExchange modelIdentifier="{name}" {flags}/>
<ModelVariables>{"".join(lines)}</ModelVariables>
<ModelStructure>{lists}</ModelStructure>
</fmiModelDescription>
"""


STATES = {
    2: 'canGetAndSetFMUstate="true" canSerializeFMUstate="true"',
    3: 'canGetAndSetFMUState="true" canSerializeFMUState="true"'
    ' needsCompletedIntegratorStep="true"',
}
NO_STEPS = {
    2: 'completedIntegratorStepNotNeeded="true"',
    3: 'needsCompletedIntegratorStep="false"',
}


def make_model(
    path: Path, name: str, version: int = 2, flags: str = "", compile_flags: tuple[str, ...] = ()
) -> Path:
    """Write an FMU to `path`."""
    flags = flags or STATES[version]
    defines = (f"-DMODEL={name}", f"-DFMI={version}", *compile_flags)
    library = compile_specimen(*defines, name="exchange_models")
    folder = platform_names()[version - 2]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", describe(name, version, flags))
        archive.writestr(f"binaries/{folder}/{name}.so", library.read_bytes())
    return path
