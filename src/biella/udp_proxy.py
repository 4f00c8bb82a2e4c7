"""``python -m biella.udp_proxy``: a UDP proxy that loses, delays and damages datagrams."""

from .scheduler.devices.virtual._udp_proxy import Faults, UdpProxy, main

__all__ = [
    "Faults",
    "UdpProxy",
    "main",
]

if __name__ == "__main__":
    raise SystemExit(main())
