"""The peers of the benchmarks: one file each, run in a process of its own by `process.Peer`."""
