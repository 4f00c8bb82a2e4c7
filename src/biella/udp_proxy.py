"""``python -m biella.udp_proxy``: a UDP proxy that loses, delays and damages datagrams."""

from .scheduler.devices.virtual.relay import Faults, Relay, main

__all__ = [
    "Faults",
    "Relay",
    "main",
]

if __name__ == "__main__":
    raise SystemExit(main())
