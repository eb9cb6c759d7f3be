"""Whether probes become jumps is a matter of this CPU, and what is in the way is said."""

import unittest
from pathlib import Path

from attach_test import Counter
from support import probectl
from support.daemon import Daemon

_CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def _in_the_way():
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines()
                 if line.startswith("flags")).split()
    if "constant_tsc" not in flags and _CLOCK_SOURCE.read_text() != "tsc\n":
        return "time-stamp counter"
    if "rdtscp" not in flags:
        return "which CPU"
    return None


class Jumps(unittest.TestCase):
    def test_jump_or_reason(self):
        with Daemon() as daemon, Counter() as counter, \
                probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work n=%di:u64"],
                                  armed=counter.site, address=daemon.address) as session:
            site, = daemon.settled_sites()
            reason = _in_the_way()
            self.assertEqual(site["mechanism"] == "optimized", reason is None, site)
            self.assertIn(reason or "", site["reason"])
            session.wait_for_records(50)
            session.detach()
            counter.assert_unharmed(self)
