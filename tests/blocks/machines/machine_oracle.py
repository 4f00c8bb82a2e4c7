"""A state machine in plain Python, written from the semantics in docs/guides/state_machines.md.

It shares nothing with the kernel: the configuration is a set of active states, guards and actions
are evaluated by Python.
"""

from __future__ import annotations

import math

from biella.blocks import StateMachine

NAMES = {
    "abs": abs,
    "min": min,
    "max": max,
    "floor": math.floor,
    "where": lambda c, a, b: a if c else b,
}


class Oracle:
    """Runs a `StateMachine` sample by sample."""

    def __init__(self, machine: StateMachine, step: float) -> None:
        self.machine, self.step = machine, step
        names = machine._names
        self.kinds: dict = {port.name: port.kind for port in names.outputs}
        self.kinds |= {name: kind for name, (kind, _) in names.data.items()}
        self.values = {port.name: names.initial.get(port.name, 0.0) for port in names.outputs}
        self.values |= {name: value for name, (_, value) in names.data.items()}
        self.parameters = {item.name: float(item.value) for item in names.parameters}
        self.active: set = set()
        self.entered: dict = {}
        self.memory: dict = {}
        self.before = dict.fromkeys(names.events, False)
        self.emitted: set[str] = set()
        self.sample = 0

    def names_for(self, state):
        flags = {
            "in_" + one.path.replace(".", "_"): float(one in self.active)
            for one in self.machine.chart.walk()
            if one.parent is not None
        }
        return {
            **NAMES,
            **self.parameters,
            **self.inputs,
            **flags,
            **self.values,
            "t": self.sample * self.step,
            "elapsed": (self.sample - self.entered.get(state, self.sample)) * self.step,
        }

    def evaluate(self, text, state):
        return float(eval(str(text), {"__builtins__": {}}, self.names_for(state)))

    def assign(self, actions, state):
        for name, text in actions.items():
            value = self.evaluate(text, state)
            kind = self.kinds[name]
            self.values[name] = (
                float(value != 0)
                if kind == "boolean"
                else float(round(value))
                if kind == "integer"
                else value
            )

    def enter(self, state, target, deep=False):
        self.active.add(state)
        self.entered[state] = self.sample
        self.assign(state.entry, state)
        self.emitted |= set(state.emit)
        if state.is_parallel:
            for region in state.children:
                self.enter(region, target, deep)
        elif state.children:
            toward = next(
                (c for c in state.children if target is c or (target and c.contains(target))), None
            )
            if toward is not None:
                child, deep = toward, False
            elif (deep or state.history) and state in self.memory:
                child, deep = self.memory[state], deep or state.history == "deep"
            else:
                child, deep = state.initial, deep or state.history == "deep"
            self.memory[state] = child
            self.enter(child, target, deep)

    def leave(self, state):
        for child in reversed(state.children):
            if child in self.active:
                self.leave(child)
        self.assign(state.exit, state)
        self.active.discard(state)
        self.left.add(state)

    def is_enabled(self, one, events, only_events):
        if one.on is not None:
            if one.on not in events:
                return False
        elif only_events:
            return False
        if one.after is not None:
            waited = self.sample - self.entered[one.source]
            if waited * self.step < self.evaluate(one.after, one.source) * (1 - 1e-9):
                return False
        return one.when is None or self.evaluate(one.when, one.source) != 0

    def process(self, state, events, only_events):
        if state.parent is None:
            self.left: set = set()
        out = [one for one in self.machine.transitions if one.source is state]
        out.sort(key=lambda one: one.priority if one.priority is not None else math.inf)
        for one in out:
            if not self.is_enabled(one, events, only_events):
                continue
            if one.target is None:
                self.assign(one.do, state)
                self.emitted |= set(one.emit)
                return
            scope = one.scope()
            top = next(c for c in scope.children if c in self.active)
            self.leave(top)
            self.assign(one.do, state)
            self.emitted |= set(one.emit)
            next_ = next(c for c in scope.children if c is one.target or c.contains(one.target))
            self.memory[scope] = next_
            self.enter(next_, one.target)
            return
        if not only_events:
            self.assign(state.during, state)
        for child in list(state.children):
            if state in self.left:
                return  # a region has led out of it, and perhaps in again
            if child in self.active:
                self.process(child, events, only_events)
                if not state.is_parallel:
                    return

    def run(self, inputs):
        """One sample: inputs by name; return the outputs by name."""
        names = self.machine._names
        self.inputs = {name: float(value) for name, value in inputs.items()}
        self.emitted = set()
        events = set()
        for name, edge in names.events.items():
            now, before = bool(inputs[name]), self.before[name]
            rising, falling = now and not before, before and not now
            hit = {"rising": rising, "falling": falling, "either": rising or falling}[edge]
            if self.sample and hit:
                events.add(name)
            self.before[name] = now
        root = self.machine.chart
        shown: set[str] = set()
        if self.sample == 0:
            self.enter(root, None)
        else:
            self.process(root, events, False)
        local = set(names.local_events)
        for _ in range(100):
            shown |= self.emitted - local
            pending = self.emitted & local
            self.emitted = set()
            if not pending:
                break
            self.process(root, pending, True)
        else:
            raise RuntimeError("local events without end")
        self.sample += 1
        result = {name: float(name in shown) for name in names.pulses if name not in local}
        result |= {port.name: self.values[port.name] for port in names.outputs}
        for port in self.machine.outputs:
            if port.names:
                result[port.name] = float(1 + port.names.index(self.shown(port.name)))
        return result

    def shown(self, port):
        path = port.removesuffix("state").rstrip(".")
        region = next(one for one in self.machine.chart.walk() if one.path == path)
        if region not in self.active:
            return "inactive"
        state = region
        while state.children and not state.is_parallel:
            state = next(child for child in state.children if child in self.active)
        return state.path[len(region.path) :].lstrip(".")
