"""Initial value problems with known solutions, as formulas: stiff ones, and three that are not.

Most are those of the Test Set for IVP Solvers (F. Mazzia, C. Magherini, Bari, release 2.4), with
its reference solutions at the end, computed there with RADAU in extended precision. Two have a
closed form: the transfer function with two poles and Kepler's problem. The Arenstorf orbit is that
of E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, II.0.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from biella import Diagram
from biella.blocks import Expression, Integrator

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def _in_c(formula: str) -> str:
    """Write a formula in C: powers are products."""

    def write(node: ast.expr) -> str:
        match node:
            case ast.Constant(value=value):
                return repr(float(value))
            case ast.Name(id=name):
                return name
            case ast.Subscript(slice=ast.Constant(value=k)):
                return f"x[{k}]"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{write(operand)})"
            case ast.Call(func=ast.Name(id=name), args=[argument]):
                return f"{name}({write(argument)})"
            case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int(power))):
                return "(" + " * ".join([write(base)] * power) + ")"
            case ast.BinOp(left=left, op=operator, right=right):
                return f"({write(left)} {_OPERATORS[type(operator)]} {write(right)})"
        raise ValueError(f"no C for {ast.unparse(node)}")

    return write(ast.parse(formula, mode="eval").body)


@dataclass(frozen=True)
class Problem:
    """dx/dt = f(x), x(0) = start, with the solution at `end`."""

    name: str
    formulas: tuple[str, ...]
    start: tuple[float, ...]
    end: float
    solution: tuple[float, ...]
    stiff: bool = True
    floor: float = 1e-3
    """Absolute tolerance, in units of the relative one."""

    def diagram(self, solver: str, relative: float, step: float | None = None) -> Diagram:
        """Return a vector integrator with its formulas; by default one tick until the end."""
        d = Diagram(
            self.name,
            step=self.end if step is None else step,
            solver=solver,
            tolerance=(relative, self.floor * relative),
            max_steps=1_000_000,
        )
        x = d.add(Integrator(self.start), "x")
        f = d.add(Expression(list(self.formulas)), "f")
        d.connect(x, f)
        d.connect(f, x)
        return d

    def function(self) -> Callable[[float, Any], Any]:
        """Return f(t, x) in Python, from the same formulas."""
        text = ", ".join(self.formulas)
        made: Callable[[float, Any], Any] = eval(f"lambda t, x: ({text},)", {"sqrt": math.sqrt})
        return made

    def c_source(self) -> str:
        """Return f(t, x) in C, from the same formulas."""
        lines = (f"    dx[{k}] = {_in_c(formula)};" for k, formula in enumerate(self.formulas))
        return (
            "#include <math.h>\nvoid right_hand_side(double t, const double *x, double *dx);\n"
            "void right_hand_side(double t, const double *x, double *dx) {\n    (void)t;\n"
            + "\n".join(lines)
            + "\n}\n"
        )

    def error(self, x: Any) -> float:
        """Return the largest error at the end, relative to value and floor."""
        solution = np.array(self.solution)
        return float((np.abs(x - solution) / (np.abs(solution) + self.floor)).max())


VAN_DER_POL = Problem(
    "van der Pol, µ = 10³",
    ("x[1]", "1e3 * (1 - x[0] * x[0]) * x[1] - x[0]"),
    (2.0, 0.0),
    2000.0,
    (0.1706167732170483e1, -0.8928097010247975e-3),
    floor=1e-6,
)
VAN_DER_POL_SCALED = Problem(
    "van der Pol, 1/ε = 10⁶",
    ("x[1]", "1e6 * ((1 - x[0] * x[0]) * x[1] - x[0])"),
    (2.0, 0.0),
    2.0,
    (0.1706167732170483e1, -0.8928097010247975),
)
ROBERTSON = Problem(
    "Robertson",
    (
        "-0.04 * x[0] + 1e4 * x[1] * x[2]",
        "0.04 * x[0] - 1e4 * x[1] * x[2] - 3e7 * x[1] * x[1]",
        "3e7 * x[1] * x[1]",
    ),
    (1.0, 0.0, 0.0),
    1e11,
    (0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050),
    floor=1e-8,
)
HIRES = Problem(
    "HIRES",
    (
        "-1.71 * x[0] + 0.43 * x[1] + 8.32 * x[2] + 0.0007",
        "1.71 * x[0] - 8.75 * x[1]",
        "-10.03 * x[2] + 0.43 * x[3] + 0.035 * x[4]",
        "8.32 * x[1] + 1.71 * x[2] - 1.12 * x[3]",
        "-1.745 * x[4] + 0.43 * x[5] + 0.43 * x[6]",
        "-280 * x[5] * x[7] + 0.69 * x[3] + 1.71 * x[4] - 0.43 * x[5] + 0.69 * x[6]",
        "280 * x[5] * x[7] - 1.81 * x[6]",
        "-280 * x[5] * x[7] + 1.81 * x[6]",
    ),
    (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0057),
    321.8122,
    (
        0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2,
        0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2,
    ),
)  # fmt: skip

_RATES = (
    ".35 * x[0]", "26.6 * x[1] * x[3]", "1.23e4 * x[4] * x[1]", ".86e-3 * x[6]", ".82e-3 * x[6]",
    "1.5e4 * x[6] * x[5]", ".13e-3 * x[8]", "2.4e4 * x[8] * x[5]", "1.65e4 * x[10] * x[1]",
    "9e3 * x[10] * x[0]", ".022 * x[12]", "1.2e4 * x[9] * x[1]", "1.88 * x[13]",
    "1.63e4 * x[0] * x[5]", "4.8e6 * x[2]", ".35e-3 * x[3]", ".0175 * x[3]", "1e8 * x[15]",
    ".444e12 * x[15]", "1.24e3 * x[16] * x[5]", "2.1 * x[18]", "5.78 * x[18]",
    ".0474 * x[0] * x[3]", "1.78e3 * x[18] * x[0]", "3.12 * x[19]",
)  # fmt: skip
_BALANCE = (
    "-1-10-14-23-24+2+3+9+11+12+22+25", "-2-3-9-12+1+21", "-15+1+17+19+22", "-2-16-17-23+15",
    "-3+4+4+6+7+13+20", "-6-8-14-20+3+18+18", "-4-5-6+13", "+4+5+6+7", "-7-8", "-12+7+9",
    "-9-10+8+11", "+9", "-11+10", "-13+12", "+14", "-18-19+16", "-20", "+20", "-21-22-24+23+25",
    "-25+24",
)  # fmt: skip
"""Of each species, the numbers of the reactions that take and give it."""


def _write_balance(balance: str) -> str:
    parts = balance.replace("+", " +").replace("-", " -").split()
    return " ".join(f"{part[0]} {_RATES[int(part[1:]) - 1]}" for part in parts).removeprefix("+ ")


POLLUTION = Problem(
    "pollution",
    tuple(_write_balance(balance) for balance in _BALANCE),
    (0, 0.2, 0, 0.04, 0, 0, 0.1, 0.3, 0.01, 0, 0, 0, 0, 0, 0, 0, 0.007, 0, 0, 0),
    60.0,
    (
        0.5646255480022769e-1, 0.1342484130422339, 0.4139734331099427e-8, 0.5523140207484359e-2,
        0.2018977262302196e-6, 0.1464541863493966e-6, 0.7784249118997964e-1, 0.3245075353396018,
        0.7494013383880406e-2, 0.1622293157301561e-7, 0.1135863833257075e-7, 0.2230505975721359e-2,
        0.2087162882798630e-3, 0.1396921016840158e-4, 0.8964884856898295e-2, 0.4352846369330103e-17,
        0.6899219696263405e-2, 0.1007803037365946e-3, 0.1772146513969984e-5, 0.5682943292316392e-4,
    ),
)  # fmt: skip
TWO_POLES = Problem(
    "poles at -1 and -10⁵",
    ("x[1]", "1e5 * (1 - x[0]) - 100001 * x[1]"),
    (0.0, 0.0),
    2.0,
    (1 - 1e5 * math.exp(-2) / 99999, 1e5 * math.exp(-2) / 99999),
)
"""Step response of 1/((1 + s) (1 + s/10⁵)); exp(-2·10⁵) is 0."""
KEPLER = Problem(
    "Kepler, e = 0.6, 5 turns",
    (
        "x[2]",
        "x[3]",
        "-x[0] / sqrt(x[0] * x[0] + x[1] * x[1])**3",
        "-x[1] / sqrt(x[0] * x[0] + x[1] * x[1])**3",
    ),
    (0.4, 0.0, 0.0, 2.0),
    10 * math.pi,
    (0.4, 0.0, 0.0, 2.0),
    stiff=False,
    floor=1.0,
)
_M = 0.012277471
ARENSTORF = Problem(
    "Arenstorf orbit",
    (
        "x[2]",
        "x[3]",
        f"x[0] + 2 * x[3] - {1 - _M} * (x[0] + {_M}) / sqrt((x[0] + {_M})**2 + x[1]**2)**3"
        f" - {_M} * (x[0] - {1 - _M}) / sqrt((x[0] - {1 - _M})**2 + x[1]**2)**3",
        f"x[1] - 2 * x[2] - {1 - _M} * x[1] / sqrt((x[0] + {_M})**2 + x[1]**2)**3"
        f" - {_M} * x[1] / sqrt((x[0] - {1 - _M})**2 + x[1]**2)**3",
    ),
    (0.994, 0.0, 0.0, -2.00158510637908252240537862224),
    17.0652165601579625588917206249,
    (0.994, 0.0, 0.0, -2.00158510637908252240537862224),
    stiff=False,
    floor=1.0,
)


def _attract(star: int, first: int) -> str:
    """Return the acceleration of a star of mass star + 1: x from `first` 0, y from 7."""
    return " + ".join(
        f"{other + 1} * (x[{first + other}] - x[{first + star}]) /"
        f" sqrt((x[{other}] - x[{star}])**2 + (x[{7 + other}] - x[{7 + star}])**2)**3"
        for other in range(7)
        if other != star
    )


PLEIADES = Problem(
    "Pleiades",
    (
        *(f"x[{k}]" for k in range(14, 28)),
        *(_attract(star, 0) for star in range(7)),
        *(_attract(star, 7) for star in range(7)),
    ),
    (
        3, 3, -1, -3, 2, -2, 2, 3, -3, 2, 0, 0, -4, 4,
        0, 0, 0, 0, 0, 1.75, -1.5, 0, 0, 0, -1.25, 1, 0, 0,
    ),
    3.0,
    (
        0.3706139143970502, 0.3237284092057233e1, -0.3222559032418324e1, 0.6597091455775310,
        0.3425581707156584, 0.1562172101400631e1, -0.7003092922212495, -0.3943437585517392e1,
        -0.3271380973972550e1, 0.5225081843456543e1, -0.2590612434977470e1, 0.1198213693392275e1,
        -0.2429682344935824, 0.1091449240428980e1, 0.3417003806314313e1, 0.1354584501625501e1,
        -0.2590065597810775e1, 0.2025053734714242e1, -0.1155815100160448e1, -0.8072988170223021,
        0.5952396354208710, -0.3741244961234010e1, 0.3773459685750630, 0.9386858869551073,
        0.3667922227200571, -0.3474046353808490, 0.2344915448180937e1, -0.1947020434263292e1,
    ),
    stiff=False,
    floor=1.0,
)  # fmt: skip
STIFF = (VAN_DER_POL, VAN_DER_POL_SCALED, ROBERTSON, HIRES, POLLUTION, TWO_POLES)
SMOOTH = (KEPLER, ARENSTORF, PLEIADES)
