"""Waiting for a condition, with a deadline."""

import os
import time

PATIENCE = float(os.environ.get("PROBED_PATIENCE", "1"))  # times every deadline, on a slow machine


class Late(AssertionError):
    """A condition did not come true in time."""


def wait_until(condition, seconds=10.0, what="the condition"):
    """Polls `condition` until it gives something true, and returns that."""
    deadline = time.monotonic() + seconds * PATIENCE
    pause = 0.001
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Late(f"{what}: not within {seconds} s")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
