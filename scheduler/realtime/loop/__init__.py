"""The real-time loop: clock, deadlines, mailboxes, pipes, probes."""
