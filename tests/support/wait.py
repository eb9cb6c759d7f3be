"""Waiting for a condition, with a deadline."""

import time


class Late(AssertionError):
    """A condition did not come true in time."""


def wait_until(condition, seconds=10.0, what="the condition"):
    """Polls `condition` until it gives something true, and returns that."""
    deadline = time.monotonic() + seconds
    pause = 0.001
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise Late(f"{what}: not within {seconds} s")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
