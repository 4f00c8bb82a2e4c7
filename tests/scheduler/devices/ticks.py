"""A run with devices, tick by tick: what the paced loop does, without its clock."""

from __future__ import annotations

from ctypes import CFUNCTYPE, POINTER, c_double, c_int, c_int64, c_void_p

from biella.scheduler.devices.native import device_library
from biella.scheduler.engine.engine import OK, Instance

_Enter = CFUNCTYPE(None, c_void_p, c_int64, c_double)


class Ticks:
    """Ticks of an open binding, at times of our choice (ns)."""

    def __init__(self, bound, step_ns=1_000_000):
        self.bound, self.step_ns = bound, step_ns
        self.lib = device_library()
        self.lib.bl_device_take.restype = c_int
        self.lib.bl_device_take.argtypes = [c_void_p, c_int64, c_int64, _Enter, c_void_p]
        self.lib.bl_device_give.restype = c_int
        self.lib.bl_device_give.argtypes = [c_void_p, c_int64, POINTER(c_double)]
        self.lib.bl_device_make_safe.restype = None
        self.lib.bl_device_make_safe.argtypes = [c_void_p, c_int64]
        self.instance = Instance(bound.plan)
        self.instance.initialise()
        self.enter = _Enter(self._write)
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
