"""Expression: what a formula computes, what it refuses, the block around it."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from biella import BlockError, Diagram, DiagramError, simulate
from biella.blocks.basic.math._expression import Expression
from biella.blocks.core._ports import Port
from biella.blocks.core.formula._formula import DEEPEST, LONGEST, TALLEST

pytestmark = pytest.mark.engine

FROM_MATH = (
    "sin cos tan asin acos atan atan2 sinh cosh tanh exp log log10 sqrt floor ceil hypot pow pi e"
)
# What Python computes with; a second pen for every function that a formula may call.
PYTHON = {
    **{name: getattr(math, name) for name in FROM_MATH.split()},
    "abs": abs,
    "min": min,
    "max": max,
    "round": round,
    "sign": lambda x: (x > 0) - (x < 0),
    "clip": lambda x, low, high: low if x < low else high if x > high else x,
    "mod": lambda a, b: a % b,
    "where": lambda c, a, b: a if c else b,
}


def wire(block: Expression) -> Diagram:
    """Return a diagram in which each input `u` of `block` is fed by the diagram's input `in_u`."""
    d = Diagram("test")
    d.add(block, name="f")
    for port in block.inputs:
        assert isinstance(port.width, int)
        d.connect(d.input(f"in_{port.name}", width=port.width), block[port.name])
    return d


def evaluate(formula, values=None, **options):
    """Return the value of a formula in the engine."""
    with wire(Expression(formula, **options)).compile().instantiate() as instance:
        for name, value in (values or {}).items():
            instance.set(f"in_{name}", value)
        return instance.get("f.y")


numbers = st.floats(-100, 100).map(lambda x: round(x, 3))
leaves = st.one_of(
    st.sampled_from(["x", "y", "k", "v[0]", "v[1]", "pi", "e"]), numbers.map(lambda x: f"({x!r})")
)


UNARY = "abs sign floor ceil round sqrt sin cos tan atan tanh exp log log10 asin acos"


def grow(inner):
    """Return formulas that have `inner` ones as their parts."""
    two, three = st.tuples(inner, inner), st.tuples(inner, inner, inner)
    unary = UNARY.split()
    return st.one_of(
        st.builds(lambda ab, op: f"({ab[0]} {op} {ab[1]})", two, st.sampled_from("+-*/%")),
        st.builds(lambda ab: f"({ab[0]} // {ab[1]})", two),
        st.builds(lambda a, n: f"({a} ** {n})", inner, st.sampled_from([2, 3, -1, 0.5])),
        st.builds(lambda a, op: f"({op}{a})", inner, st.sampled_from(["-", "+", "not "])),
        st.builds(lambda a, f: f"{f}({a})", inner, st.sampled_from(unary)),
        st.builds(
            lambda ab, f: f"{f}({ab[0]}, {ab[1]})",
            two,
            st.sampled_from(["atan2", "hypot", "min", "max", "mod"]),
        ),
        st.builds(
            lambda ab, op: f"({ab[0]} {op} {ab[1]})",
            two,
            st.sampled_from(["<", "<=", "==", "!=", ">=", ">"]),
        ),
        st.builds(lambda abc: f"({abc[0]} < {abc[1]} <= {abc[2]})", three),
        # Python's `and` gives one of its operands, ours 0 or 1: `not not` makes the two agree.
        st.builds(
            lambda ab, op: f"(not not ({ab[0]} {op} {ab[1]}))", two, st.sampled_from(["and", "or"])
        ),
        st.builds(lambda abc: f"({abc[0]} if {abc[1]} else {abc[2]})", three),
        st.builds(lambda abc: f"clip({abc[0]}, {abc[1]}, {abc[2]})", three),
        st.builds(lambda abc: f"max({abc[0]}, {abc[1]}, {abc[2]})", three),
    )


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.recursive(leaves, grow, max_leaves=12), numbers, numbers, st.tuples(numbers, numbers))
def test_formula_agrees_with_python(text, x, y, v):
    """To 1e-12: the operations and the library are the same but for squares and `hypot`."""
    k = 1.75
    try:
        expected = eval(text, {"__builtins__": {}}, PYTHON | {"x": x, "y": y, "k": k, "v": v})
    except (ArithmeticError, ValueError, TypeError):  # no such value, or comparing complex ones
        assume(False)
    assume(not isinstance(expected, complex) and math.isfinite(expected))
    try:
        block = Expression(f"{text} + 0*k", inputs=["x", "y", Port("v", 2)], parameters={"k": k})
    except DiagramError as error:
        assume("no finite value" in str(error))  # in a branch that Python did not take
        assume(False)
    with wire(block).compile().instantiate() as instance:
        instance.set("in_x", x)
        instance.set("in_y", y)
        instance.set("in_v", v)
        assert instance.get("f.y") == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


CALLS = """
sin(x) cos(x) tan(x) asin(x) acos(x) atan(x) sinh(x) cosh(x) tanh(x) exp(x) log(x) log10(x) sqrt(x)
abs(x) sign(x) floor(x) ceil(x) round(x) atan2(x,y) hypot(x,y) min(x,y) max(x,y,1) min(y,x,0.1)
clip(x,-1,2) clip(x,y,y+1) mod(x,y) pow(x,y) where(x>y,x,y)
x+y x-y x*y x/y x//y x%y x**2 x**3 -x +x x<y x<=y x==y x!=y x>=y x>y -1<x<=y<9
not(x>y) (x>0)+(y>0) x-y-1 x/y/2 2**x**2 -x**2 pi*x e*y True*x+False
"""
POINTS = (-2.5, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 7.0)


@pytest.mark.parametrize("call", CALLS.split())
def test_operation_agrees_with_python(call):
    """Each operation alone, also on its edges; a value that Python refuses is skipped."""
    tried = 0
    with wire(Expression(f"0*x + 0*y + ({call})")).compile().instantiate() as instance:
        for x in POINTS:
            for y in (-1.5, -1.0, 0.5, 2.0):
                try:
                    expected = eval(call, {"__builtins__": {}}, PYTHON | {"x": x, "y": y})
                except (ArithmeticError, ValueError):
                    continue
                if isinstance(expected, complex):
                    continue
                instance.set("in_x", x)
                instance.set("in_y", y)
                assert instance.get("f.y") == pytest.approx(float(expected), rel=1e-15)
                tried += 1
    assert tried >= 12


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6).filter(lambda b: abs(b) > 1e-6))
@example(6.0, 0.1)  # the quotient rounds up to 60, but 60 * 0.1 is more than 6: 59
@example(-1.0, 0.1)
@example(-0.0, 5.0)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_floor_division_and_remainder_are_pythons(a, b):
    formulas = {"q": "a // b", "r": "a % b"}
    with wire(Expression(formulas)).compile().instantiate() as instance:
        instance.set("in_a", a)
        instance.set("in_b", b)
        assert struct.pack("d", instance.get("f.q")) == struct.pack("d", a // b)
        assert struct.pack("d", instance.get("f.r")) == struct.pack("d", a % b)


def test_and_or_not_give_zero_or_one():
    assert evaluate("x and y", {"x": 3.0, "y": 0.5}) == 1.0
    assert evaluate("x and y and z", {"x": 3.0, "y": 0.5}) == 0.0
    assert evaluate("x or y", {"x": 3.0}) == 1.0
    assert evaluate("x or y") == 0.0
    assert evaluate("not x", {"x": 3.0}) == 0.0


def test_side_that_is_not_taken_does_not_leak():
    assert evaluate("1/x if x != 0 else 5", {"x": 0.0}) == 5.0
    assert evaluate("where(x > 0, log(x), -1)", {"x": -2.0}) == -1.0
    assert evaluate("x > 0 and 1/x > 2", {"x": 0.0}) == 0.0
    with pytest.raises(BlockError, match=r"`f` \(Expression\) returned a value that is not finite"):
        evaluate("1/x", {"x": 0.0})


def test_inputs_are_names_in_order_of_appearance():
    block = Expression("b if c else a*pi*k", parameters={"k": 2})
    assert [port.name for port in block.inputs] == ["b", "c", "a"]
    block = Expression({"y1": "x + w[3]", "y2": "z*w[1]"})
    assert [(port.name, port.width) for port in block.inputs] == [("x", 1), ("w", 4), ("z", 1)]


def test_feedthrough_is_that_of_each_formula():
    block = Expression({"p": "a*b", "q": "t + c", "r": "2"}, inputs=["a", "b", "c", "unused"])
    assert block.feedthrough == ((0, 1), (2,), ())


def test_given_input_may_hide_a_constant():
    assert evaluate("2*e", {"e": 3.0}, inputs=["e"]) == 6.0
    assert evaluate("2*e", parameters={"e": 5.0}) == 10.0
    assert evaluate("2*e") == 2 * math.e


def test_outputs_may_be_several_and_vectors():
    block = Expression({"polar": ["hypot(x, y)", "atan2(y, x)"], "sum": "x + y"})
    with wire(block).compile().instantiate() as instance:
        instance.set("in_x", -3.0)
        instance.set("in_y", 4.0)
        np.testing.assert_array_equal(instance.get("f.polar"), [5.0, math.atan2(4, -3)])
        assert instance.get("f.sum") == 1.0
    np.testing.assert_array_equal(evaluate(["x", "2*x"], {"x": 2.0}), [2.0, 4.0])


def test_parameters_may_be_set_after_compile():
    block = Expression("k*x + c[2]", parameters={"k": 2.0, "c": [1.0, 2.0, 3.0]})
    with wire(block).compile().instantiate() as instance:
        instance.set("in_x", 10.0)
        assert instance.get("f.y") == 23.0
        instance.set("f.k", -1.0)
        instance.set("f.c", [0.0, 0.0, 0.5])
        assert instance.get("f.y") == -9.5
        assert instance.plan.parameters.keys() == {"f.k", "f.c"}


def test_time_is_seconds_and_continuous():
    d = Diagram("test", step=0.25, start_time=2.0)
    d.add(Expression("sin(t)"), name="f")
    result = simulate(d, until=4.0)
    np.testing.assert_array_equal(result["f"], [math.sin(2 + 0.25 * k) for k in range(9)])


@pytest.mark.parametrize(
    ("formula", "options", "rate"),
    [
        ("u*2", {}, "inherited"),
        ("u*t", {}, "continuous"),
        ("2*pi", {}, "constant"),
        ("u > 0", {"kind": "boolean"}, "switching"),
        ("t > 0", {"kind": "boolean"}, "timed"),
    ],
)
def test_rate(formula, options, rate):
    assert Expression(formula, **options).rate.kind == rate
    d = Diagram()
    sampled = d.add(Expression(formula, **options), period=0.5)
    assert d.rate_of(sampled).kind == "periodic"
    with pytest.raises(DiagramError, match="positive seconds"):
        d.add(Expression(formula, **options), period=-1.0)


def test_kind_and_unit_of_outputs():
    block = Expression(
        {"on": "x - 1", "n": "x*2.5", "y": "x"},
        unit={"y": "m/s"},
        kind={"on": "boolean", "n": "integer"},
    )
    assert [port.kind for port in block.outputs] == ["boolean", "integer", "real"]
    assert [None if p.unit is None else str(p.unit) for p in block.outputs] == [None, None, "m/s"]
    with wire(block).compile().instantiate() as instance:
        instance.set("in_x", 3.0)
        assert (instance.get("f.on"), instance.get("f.n")) == (1.0, 8.0)
        instance.set("in_x", 1.0)
        assert (instance.get("f.on"), instance.get("f.n")) == (0.0, 2.0)


def test_inputs_take_any_kind():
    d = Diagram("test")
    on = d.input("on", kind="boolean", default=1.0)
    f = d.add(Expression("3*on"), name="f")
    d.connect(on, f)
    with d.compile().instantiate() as instance:
        assert instance.get("f") == 3.0


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("__import__('os').system('true')", "cannot hold a dot"),
        ("__import__('os')", "no function `__import__`"),
        ("eval(x)", "no function `eval`"),
        ("x.real", "column 1: a formula cannot hold a dot"),
        ("math.sin(x)", r"write `sin\(x\)`"),
        ("lambda x: x", "cannot hold a lambda"),
        ("[x for x in y]", "ListComp"),
        ("(y := x)", "`:=`"),
        ("f'{x}'", "cannot hold a string"),
        ("'x'", "real numbers only"),
        ("b'x'", "real numbers only"),
        ("1j", "real numbers only"),
        ("None", "real numbers only"),
        ("x, y", "comma"),
        ("x^2", r"a power is `\*\*`"),
        ("x & y", "write `and`"),
        ("x is y", "write `==`"),
        ("x @ y", "Gain"),
        ("sine(x)", r"column 1: there is no function `sine`. Did you mean `sin`"),
        ("2 + sin(x, y)", r"column 5: `sin` takes 1 argument, got 2"),
        ("clip(x)", "takes 3 arguments, got 1"),
        ("min(x)", "two arguments or more"),
        ("sin(x=2)", "named arguments"),
        ("sin(*x)", "before an argument"),
        ("sin + 1", "`sin` is a function"),
        ("x +", r"column 4: this cannot be read"),
        ("x y", r"column 3: this cannot be read"),
        ("x = 3", "cannot be read"),
        ("import os", "cannot be read"),
        ("", "empty"),
        ("  \n ", "empty"),
        ("x # y", "column 3: a formula cannot hold '#'"),
        ("x\0", "cannot hold"),
        ("u[x]", "an index is a whole number"),
        ("u[-1]", "an index is a whole number"),
        ("u[True]", "an index is a whole number"),
        ("u[0:2]", "slice"),
        ("u[99999999999]", "too large"),
        ("u + u[2]", r"`u` has 3 elements: say which"),
        ("t[0]", "no elements"),
        ("u[0](1)", "Subscript"),
        ("1e400", "number is too large"),
        ("9" * 400, "number is too large"),
        ("9**9**9**9", r"column 4: `9\*\*9\*\*9` has no finite value"),
        ("x + 1/0", r"column 5: `1/0` has no finite value"),
        ("(" * 10_000 + "x" + ")" * 10_000, f"at most {LONGEST}"),
        ("(" * 1_000 + "x" + ")" * 1_000, f"at most {DEEPEST} levels"),
        ("-" * 3_000 + "x", f"at most {DEEPEST} levels"),
        ("not " * 900 + "x", f"at most {DEEPEST} levels"),
        ("+".join(["x"] * 1_000), f"at most {DEEPEST} levels"),
        ("x**" * 900 + "x", f"at most {DEEPEST} levels"),
        ("x+(" * 80 + "x" + ")" * 80, f"at most {TALLEST} fit"),
        (3, "a formula is a string"),
        ([], "at least one formula"),
        ({}, "at least one formula"),
        ({"y": []}, "at least one formula"),
    ],
)
def test_refused(formula, message):
    with pytest.raises(DiagramError, match=message):
        Expression(formula)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"parameters": {"K": 2}},
            "the parameter `K` is not in the formula.*Inputs: k",
        ),
        ({"inputs": ["k"]}, r"column 3: `x` is neither an input nor a parameter.*Inputs: k"),
        ({"inputs": ["k", Port("x", 2)]}, "`x` has 2 elements: say which"),
        ({"inputs": ["k", Port("x", "n")]}, "fixed width"),
        ({"inputs": ["k", "x"], "parameters": {"k": 1}}, "both an input and a parameter"),
        ({"parameters": {"t": 1}}, "'t' is the time"),
        ({"parameters": {"sin": 1}}, "'sin' is a function"),
        ({"parameters": {"a b": 1}}, "another name"),
        ({"parameters": {"k": "two"}}, "`k` requires numbers"),
        ({"unit": {"z": "m"}}, "unit names `z`, which is not an output"),
        ({"kind": "text"}, "kind is one of"),
    ],
)
def test_options_refused(options, message):
    with pytest.raises(DiagramError, match=message):
        Expression("k*x", **options)


def test_error_points_at_the_place():
    with pytest.raises(DiagramError) as caught:
        Expression("θ + cas(x)")
    assert str(caught.value).splitlines()[1:] == ["    θ + cas(x)", "        ^"]


@pytest.mark.parametrize(
    ("inside", "places", "value"),
    [("x", 1, 1.0), ("0 < x <= 1 < 2", 4, 1.0), ("x if x else 2", 3, 1.0)],
)
def test_stack_may_be_filled_to_its_bound(inside, places, value):
    """What the reader counts is what the engine counts: one more does not fit."""
    depth = TALLEST - places
    assert evaluate("x+(" * depth + inside + ")" * depth, {"x": 1.0}) == depth + value
    with pytest.raises(DiagramError, match=f"at most {TALLEST} fit"):
        Expression("x+(" * (depth + 1) + inside + ")" * (depth + 1))
