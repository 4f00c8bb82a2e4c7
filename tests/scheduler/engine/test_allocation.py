"""No memory is allocated in a tick: not by solvers, nor at events.

A library in front of the C library counts the calls of malloc, calloc and realloc while the engine
runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from biella.scheduler.engine.build import find_compiler

# Not marked `engine`: the sanitizers replace the allocator, whose calls are counted here.

COUNTER = r"""
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static _Thread_local int is_counting;
static _Thread_local long count;

void *malloc(size_t size) { count += is_counting; return __libc_malloc(size); }
void *calloc(size_t n, size_t size) { count += is_counting; return __libc_calloc(n, size); }
void *realloc(void *p, size_t size) { count += is_counting; return __libc_realloc(p, size); }

typedef int run_ticks(void *, int64_t, void *, int64_t *);
typedef int open_plan(const void *, size_t, void **, char *, size_t);

long count_in(run_ticks *run, void *engine, int64_t ticks, int *status) {
    count = 0;
    is_counting = 1;
    int64_t done = 0;
    *status = run(engine, ticks, NULL, &done);
    is_counting = 0;
    return count;
}

typedef int run_estimated(void *, int64_t, void *, void *, int64_t *);

long count_estimated(run_estimated *run, void *engine, int64_t ticks, void *estimate, int *status) {
    count = 0;
    is_counting = 1;
    int64_t done = 0;
    *status = run(engine, ticks, NULL, estimate, &done);
    is_counting = 0;
    return count;
}

long count_open(open_plan *open, const void *plan, size_t size) {
    void *engine = NULL;
    char message[512];
    count = 0;
    is_counting = 1;
    open(plan, size, &engine, message, sizeof message);
    is_counting = 0;
    return count;
}
"""

RUN = """
import ctypes, json, os
from biella import Diagram
from biella.blocks import Expression, Gain, Integrator, Relay, Sine, Sum
from biella.blocks.multibody import System
from biella.scheduler.run._error_sampling import Sampler, why_not

counter = ctypes.CDLL(os.environ["COUNTER"])
counter.count_in.restype = counter.count_open.restype = ctypes.c_long
counter.count_estimated.restype = ctypes.c_long

def relay(**options):
    d = Diagram(step=0.01, **options)
    x, r = d.add(Integrator(0.0), "x"), d.add(Relay(0.1, -0.1, high=-1.0, low=1.0), "r")
    d.connect(x, r)
    d.connect(r, x)
    return d

def stiff(**options):
    d = Diagram(step=1.0, **options)
    x = d.add(Integrator([2.0, 0.0]), "x")
    f = d.add(Expression(["x[1]", "100 * (1 - x[0] * x[0]) * x[1] - x[0]"]), "f")
    d.connect(x, f)
    d.connect(f, x)
    return d

def line(**options):
    d = Diagram(step=0.1, **options)
    blocks = [d.add(Integrator(float(k == 0)), f"x{k}") for k in range(60)]
    for k, x in enumerate(blocks):
        left, right = blocks[max(k - 1, 0)], blocks[min(k + 1, 59)]
        s = d.add(Sum("+-+-"), f"s{k}")
        for n, source in enumerate((left, x, right, x)):
            d.connect(source, s[f"u{n + 1}"])
        d.connect(s, x)
    return d

def coupled(**options):
    s = System("mass", (0, 0), planar=True)
    body = s.body("mass", mass=1.0, inertia=1.0, velocity=(1.0, 0))
    s.prismatic("slide", s.ground, body, at=(0, 0), axis=(1, 0))
    s.force("push", body.marker("end"), (0.0, 0.0))
    d = Diagram(step=0.1, extrapolation=1, coupling_tolerance=1e-4, **options)
    plant = d.add(s.block(["push.force.x"], ["slide.displacement"], mode="internal"), "plant")
    d.chain(plant, d.add(Expression("-30 * u", unit="N"), "spring"), plant["push.force.x"])
    return d

def substeps(**options):
    d = relay(**options)
    d.add(Integrator(), "slow", u=d.add(Expression("sin(u) + 0.1 * v"), "f", u="x"))
    d.connect("slow", "f.v")
    d.integrate("x", substeps=10)
    return d

found = {}
for name, diagram in {
    "events": relay(solver="rk4"),
    "events, dopri5": relay(solver="dopri5", tolerance=1e-8),
    "events, radau5": relay(solver="radau5", tolerance=1e-8),
    "substeps, events": substeps(solver="rk4"),
    "stiff, radau5": stiff(solver="radau5", tolerance=1e-6),
    "stiff, dopri5": stiff(solver="dopri5", tolerance=1e-4),
    "sparse, radau5": line(solver="radau5", tolerance=1e-6),
    "sparse, radau5, fixed": line(solver="radau5"),
    "sparse, trapezoidal": line(solver="trapezoidal"),
    "adaptive communication": coupled(),
    "adaptive communication, iterated": coupled(coupling="newton"),
}.items():
    plan = diagram.compile()
    instance = plan.instantiate()
    instance.initialize()
    status = ctypes.c_int()
    library = instance.library
    count = counter.count_in(
        library.bl_run, instance.handle, ctypes.c_int64(200), ctypes.byref(status)
    )
    found[name] = [count, status.value, instance.event_counts[0]]
    for ticks in () if why_not(plan, 200) else (200, 1000):
        with Sampler(instance, ticks) as sampler:
            count = counter.count_estimated(
                library.bl_run_estimated,
                instance.handle,
                ctypes.c_int64(ticks),
                ctypes.byref(sampler._estimate),
                ctypes.byref(status),
            )
            assert sampler.finish().done.all() and not sampler.failures
            found[f"{name}, estimate, {ticks} ticks"] = [count, status.value, 1]
data = bytes(plan.data)
found["open"] = [counter.count_open(library.bl_open, data, ctypes.c_size_t(len(data))), 0, 0]
print(json.dumps(found))
"""


def test_no_memory_is_allocated_in_a_tick(tmp_path: Path) -> None:
    source, library = tmp_path / "counter.c", tmp_path / "counter.so"
    source.write_text(COUNTER)
    subprocess.run(
        [*find_compiler().command, "-O1", "-fPIC", "-shared", str(source), "-o", str(library)],
        check=True,
        timeout=300,
    )
    answer = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**os.environ, "LD_PRELOAD": str(library), "COUNTER": str(library)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = json.loads(answer.stdout)
    assert found.pop("open")[0] > 10  # so the counter counts
    assert {name: (count, status) for name, (count, status, _) in found.items()} == {
        name: (0, 0) for name in found
    }
    assert all(events > 0 for name, (_, _, events) in found.items() if name.startswith("events"))
