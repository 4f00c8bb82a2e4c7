"""Devices without hardware: loopback, recordings, mailboxes, an unreliable network."""
