"""The only room that waits, retries, reads the clock, logs and picks implementations.

Belongs here: the project, capture threads, batches, the loop of `run`, the `Warehouse` users hold.
Does not belong here: how anything is computed.
Laws: algorithms return actions, this room performs them; nothing is visible that is not published.
"""
