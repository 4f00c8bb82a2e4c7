"""The reader of C headers: what it understands, and what it refuses by file and line."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from biella.scheduler.engine import c_headers, contract

pytestmark = pytest.mark.engine


def read(tmp_path, text, name="one.h"):
    (tmp_path / name).write_text(text)
    return c_headers.read_headers(tmp_path, [Path(name)])


def write(tmp_path, text):
    return contract.write_contract(read(tmp_path, text)).module


def test_enums_are_counted_as_c_counts(tmp_path):
    found = read(
        tmp_path,
        "enum { A, B = 4, C, D = (1 << C) - 1, E = -B, F = 7 / 2, G = A | B };\n"
        "typedef enum { X = 3 /* three */, Y, } kind;\n#define MOST 12\n#define PART 1e-6\n",
    )
    assert found.constants == {
        "A": 0, "B": 4, "C": 5, "D": 31, "E": -4, "F": 3, "G": 4, "X": 3, "Y": 4,
        "MOST": 12, "PART": 1e-6,
    }  # fmt: skip


def test_types_of_structures_and_functions(tmp_path):
    text = """
typedef struct thing thing;
typedef int (*call)(thing *t, int32_t op);
typedef const char *told(thing *t, void (*end)(int), double values[]);
typedef struct { double x, *y; char name[8]; const char *const *texts; } inner;
typedef struct { inner in, many[2]; thing *handle; call back; void (*end)(thing *); } outer;
BL_API outer *make(const char *name, thing **made, uint8_t *bytes, size_t size, call back);
BL_API void drop(thing *t);
static inline double half(double x) { return x > 0 ? x / 2 : 0; }
int not_exported(struct whatever *w, ...);
BL_API const double *look(void);
"""
    module = write(tmp_path, text)
    scope: dict[str, Any] = {}
    exec(compile(module, "module", "exec"), scope)
    outer, inner, call = scope["outer"], scope["inner"], scope["call"]
    assert [name for name, _ in outer._fields_] == ["in", "many", "handle", "back", "end"]
    assert ctypes.sizeof(inner) == 8 + 8 + 8 + ctypes.sizeof(ctypes.c_void_p)
    assert list(scope["FUNCTIONS"]) == ["make", "drop", "look"]
    assert scope["FUNCTIONS"]["make"] == (
        ctypes.POINTER(outer),
        [
            ctypes.c_char_p,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.POINTER(ctypes.c_uint8),
            ctypes.c_size_t,
            call,
        ],
    )
    assert scope["FUNCTIONS"]["drop"] == (None, [ctypes.c_void_p])
    assert scope["FUNCTIONS"]["look"] == (ctypes.POINTER(ctypes.c_double), [])


def test_an_array_as_an_argument_is_a_pointer(tmp_path):
    scope: dict[str, Any] = {}
    exec(write(tmp_path, "BL_API void turn(const double R[9], double v[], char name[8]);"), scope)
    numbers = ctypes.POINTER(ctypes.c_double)
    assert scope["FUNCTIONS"]["turn"] == (None, [numbers, numbers, ctypes.c_char_p])


def test_a_macro_under_a_condition_is_passed_over_where_nothing_is_exported(tmp_path):
    text = "#ifndef H\n#define MOST 3\n#ifdef _WIN32\n#define PART 1\n#endif\n#endif\n"
    assert read(tmp_path, text).constants == {"MOST": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("enum { A = sizeof(int) };", r"^one.h:1: `sizeof \( int \)` is not a whole number"),
        ("\nenum { A, B = C };", r"^one.h:2: `C` is not a whole number"),
        ("enum { A };\nenum { B,\n A = 2 };", r"^one.h:3: `A` is 2 here and 0 before"),
        ("BL_API int f(void);\ntypedef struct {\n  int x : 3;\n} s;", r"^one.h:3: .*bit field"),
        ("BL_API int f(void);\ntypedef struct { int x[2][3]; } s;", r"^one.h:2: .*array of arrays"),
        ("BL_API int f(void);\ntypedef struct { union { int a; } u; } s;", r"^one.h:2: .*`union`"),
        ("\n\nBL_API long f(int x);", r"^one.h:3: `long` is a type that Python has no counterpart"),
        ("BL_API int f(int x)", r"^one.h:1: `;` is missing"),
        ("#ifndef H\n#if X\nBL_API int f(void);\n#endif\n#endif", r"^one.h:3: .*depend on #if"),
        ("BL_API int f(void);\nBL_API int f(int x);", r"^one.h:2: `f` is declared in two ways"),
        ("\nBL_API int f(const char *format, ...);", r"^one.h:2: `...` is a type"),
        ("\nBL_API int f(unknown *x);", r"^one.h:2: `unknown` is a type"),
        ("BL_API int f(void);\nint BL_API g(void);", r"^one.h:2: .*must begin with it"),
        ("BL_API int f(void);\ntypedef struct { int x[]; } s;", r"^one.h:2: .*without a length"),
        ("BL_API int f(void);\ntypedef double vector[3];", r"^one.h:2: `vector` names an array"),
        ("BL_API int f(void);\n#pragma pack(1)", r"^one.h:2: .*cannot be packed"),
        ("#pragma once\n#if X\nBL_API int f(void);\n#endif", r"^one.h:3: .*depend on #if"),
        (
            "#ifndef H\n#if X\n#define A 1\n#endif\nBL_API int f(void);\n#endif",
            r"^one.h:3: `A`: .*#if",
        ),
        ("enum { A };\n#define A 1\n", r"^one.h:1: `A` is 0 here and 1 before"),
        ("\n#define A 1\n#define A 2", r"^one.h:3: `A` is 2 here and 1 before"),
        ("\n#define A 010", r"^one.h:2: `010` is octal"),
        ("\nenum { A = 1 / 0 };", r"^one.h:2: `1 / 0` is not a whole number"),
        ("\nenum { A = 1 << 31 };", r"^one.h:2: `A` is 2147483648, which is not an int"),
        (
            "typedef struct { int x; } s;\nBL_API int f(void);\ntypedef struct { double x; } s;",
            r"^one.h:3: `s` is declared in another way at one.h:1",
        ),
        (
            "struct s { int x; struct s *next; };\nBL_API int f(struct s *x);",
            r"^one.h:1: `s` points",
        ),
    ],
)
def test_what_is_not_understood_is_refused_by_file_and_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        write(tmp_path, text)


def read_shared(tmp_path, text):
    (tmp_path / "one.c").write_text(text)
    found = c_headers.Headers(constants={"BASE": 3})
    c_headers.read_shared_enums(tmp_path, [Path("one.c")], found)
    return found


def test_of_a_source_only_marked_enums_are_read(tmp_path):
    text = """#define MOST 12
static const char *text = "enum { no };";
enum { HIDDEN, ALSO };
BL_SHARED enum { A = BASE, /* three */ B };
static int f(void) { return '{'; }
BL_SHARED enum {
    C = B + 2,
    D
};
"""
    found = read_shared(tmp_path, text)
    assert found.constants == {"BASE": 3, "A": 3, "B": 4, "C": 6, "D": 7}
    assert [enum.names for enum in found.enums] == [("A", "B"), ("C", "D")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nBL_SHARED typedef enum { A } a;", r"^one.c:2: BL_SHARED stands at the start"),
        ("int x; BL_SHARED enum { A };", r"^one.c:1: BL_SHARED stands at the start"),
        ("/* BL_SHARED enum { A }; */", r"^one.c:1: BL_SHARED stands at the start"),
        ("#ifndef X\nBL_SHARED enum { A };\n#endif", r"^one.c:2: .*depend on #if"),
        ("\nBL_SHARED enum {\n A,\n B = sizeof(int) };", r"^one.c:4: .* not a whole number"),
        ("BL_SHARED enum { BASE };", r"^one.c:1: `BASE` is 0 here and 3 before"),
    ],
)
def test_a_mark_that_would_be_missed_is_refused(tmp_path, text, message):
    with pytest.raises(c_headers.HeaderError, match=message):
        read_shared(tmp_path, text)
