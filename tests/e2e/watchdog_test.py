"""The service manager's watchdog is fed by the tracer thread, so one that is stuck shows."""

import socket
import tempfile
import time
import unittest

from support import probectl
from support.paths import BUILD, PROBED
from support.process import Program, status
from support.wait import wait_until

SLEEPER = BUILD / "tests/puppets/sleeper"
TIMEOUT = 124


class Notifications:
    """What the daemon tells its service manager, with the time at which it came."""

    def __init__(self, folder):
        self.path = f"{folder}/notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._socket.setblocking(False)
        self.messages = []

    def take(self):
        while True:
            try:
                text = self._socket.recv(4096).decode()
            except BlockingIOError:
                return self.messages
            self.messages += [(time.monotonic(), line) for line in text.splitlines()]

    def count(self, line, since=0.0):
        return sum(1 for when, text in self.take() if text == line and when >= since)

    def close(self):
        self._socket.close()


class Watchdog(unittest.TestCase):
    def test_a_tracer_that_is_stuck_is_told_and_recovers(self):
        with tempfile.TemporaryDirectory() as folder:
            notifications = Notifications(folder)
            self.addCleanup(notifications.close)
            address = f"unix://{folder}/socket"
            env = {**probectl.environment(), "NOTIFY_SOCKET": notifications.path,
                   "WATCHDOG_USEC": "1000000"}
            env.pop("WATCHDOG_PID", None)
            with Program([PROBED, "--listen", address], env=env) as daemon, \
                    Program([SLEEPER]) as sleeper:
                wait_until(lambda: notifications.count("READY=1"), 15)
                wait_until(lambda: notifications.count("WATCHDOG=1") > 2, 15)
                self.stick_and_recover(address, notifications, daemon, sleeper)

    def stick_and_recover(self, address, notifications, daemon, sleeper):
        def run(*words):
            return probectl.probectl(*words, address=address)

        definition = ["--pid", str(sleeper.pid), "-e", f"p:e/x {SLEEPER}:probed"]
        sleeper.wait_for("ready")
        self.assertEqual(run("attach", "--pid", str(sleeper.pid)).code, 0)
        sleeper.say("alone\n")
        wait_until(lambda: (status(sleeper.pid, "State") or "")[0] == "D", 10)
        stuck = time.monotonic()
        # No thread can be stopped, and the tracer waits for one.
        refused = run("define", *definition)
        self.assertEqual(refused.code, TIMEOUT, refused.err)
        self.assertIn(f"{sleeper.pid} (D)", refused.err)
        wait_until(lambda: "tracer thread does not answer" in daemon.err + daemon.out, 10)
        self.assertEqual(notifications.count("STATUS=the tracer thread does not answer"), 1)
        wait_until(lambda: "tracer thread answers again" in daemon.err + daemon.out, 10)
        told = [when for when, text in notifications.take() if text == "WATCHDOG=1"]
        gaps = [after - before for before, after in zip(told, told[1:]) if after > stuck]
        self.assertGreater(max(gaps), 1.5, "the watchdog was fed while the tracer was stuck")
        sleeper.say("w\n")
        sleeper.wait_for("awake 42")
        self.assertEqual(run("define", *definition).code, 0)
        self.assertEqual(run("detach", "--pid", str(sleeper.pid)).code, 0)
        self.assertEqual(sleeper.finish(10), 0)


if __name__ == "__main__":
    unittest.main()
