"""A run with devices, tick by tick: what the real-time loop does, without its clock."""

from __future__ import annotations

from ctypes import POINTER, c_double

from biella.scheduler.engine._engine import OK, Instance
from biella.scheduler.engine._library import contract, library


class Ticks:
    """Ticks of an open binding, at times of our choice (ns)."""

    def __init__(self, bound, step_ns=1_000_000):
        self.bound, self.step_ns = bound, step_ns
        self.lib = library()
        self.instance = Instance(bound.plan)
        self.instance.initialize()
        self.enter = contract.bl_enter(self._write)
        self.tick = 0

    def _write(self, _, slot, value):
        self.instance.values[slot] = value

    def advance(self, count=1, now=None, signals=()):
        """Run ticks; return the values of `signals` at each."""
        rows = []
        for _ in range(count):
            at = self.tick * self.step_ns if now is None else now()
            statuses = [
                self.lib.bl_device_take(device.handle, self.tick, at, self.enter, None)
                for device in self.bound.devices
            ]
            self.instance.touch()
            self.instance.evaluate()
            rows.append([self.instance.get(path) for path in signals])
            pointer = self.instance.values.ctypes.data_as(POINTER(c_double))
            statuses += [
                self.lib.bl_device_give(device.handle, self.tick, pointer)
                for device in self.bound.devices
            ]
            if any(status != OK for status in statuses):
                raise RunEnded([device.why for device in self.bound.devices if device.why])
            self.instance.run(1)
            self.tick += 1
        return rows

    def make_safe(self):
        for device in self.bound.devices:
            self.lib.bl_device_make_safe(device.handle, self.tick)

    def close(self):
        self.instance.close()


class RunEnded(Exception):
    pass
