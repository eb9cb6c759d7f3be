"""Probes on code of a module that comes and goes, against the device's own counter."""

import socket
import subprocess
import unittest
from pathlib import Path

from kernel_side import Case
from support.wait import wait_until

_MODULE = next(Path("/lib/modules").glob("*/kernel/drivers/net/dummy.ko"))
_LIST = Path("/sys/kernel/debug/kprobes/list")
_SENT = Path("/sys/class/net/dummy0/statistics/tx_packets")


def command(*words):
    subprocess.run(words, check=True, timeout=60, capture_output=True)


class Module(Case):
    def load(self):
        command("insmod", str(_MODULE))
        self.addCleanup(lambda: Path("/sys/module/dummy").exists() and command("rmmod", "dummy"))
        command("ip", "addr", "add", "10.9.9.1/24", "dev", "dummy0")
        command("ip", "link", "set", "dummy0", "up")

    def send(self, times):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            for _ in range(times):
                out.sendto(b"packet", ("10.9.9.2", 9))

    def assert_hits_are_the_devices(self, before):
        def agree():
            sent = int(_SENT.read_text())
            return self.profile()["xmit"]["hits"] - before == sent >= 20
        wait_until(agree, 20, "as many hits as packets")

    def listed(self):
        probes = self.objects("kernel", "list")
        text = [" ".join(line.split()) for line in self.run_ok("kernel", "list").out.splitlines()]
        self.assertEqual(text, [" ".join(line.split()) for line in _LIST.read_text().splitlines()])
        return {probe["place"]: probe for probe in probes}

    def test_before_and_after_load(self):
        # Not found, or since Linux 6.2 invalid.
        missing = self.daemon.run("define", "-e", "p:my/early dummy_xmit")
        self.assertIn(missing.code, (5, 2))
        self.assertIn("BAD_PROBE_ADDR", missing.err)
        self.assertIn("not loaded", self.refused("explain", "--kernel", "dummy:dummy_xmit",
                                                 code=5).err)
        probe, = self.define("p:my/xmit dummy:dummy_xmit device=+0(%si):string")
        self.assertEqual(probe["definition"], "p:my/xmit dummy:dummy_xmit device=+0(%si):string")
        self.assertFalse([place for place in self.listed() if place.startswith("dummy_xmit+")])

        self.load()
        # With endbr64 in front of it, it is at its fifth byte.
        place, = [place for place in self.listed() if place.startswith("dummy_xmit+")]
        self.assertEqual(self.listed()[place]["module"], "dummy")
        self.send(20)
        self.assert_hits_are_the_devices(0)
        symbol, = self.objects("symbols", "--kernel", "dummy_xmit")
        self.assertEqual(symbol["module"], "dummy")
        place = self.run_ok("explain", "--kernel", "dummy:dummy_xmit").out
        self.assertIn("mechanism    kernel", place)
        self.assertIn("dummy:0x0", place)
        self.run_ok("explain", "--kernel", "dummy_xmit")

        command("rmmod", "dummy")
        gone = [probe for probe in self.objects("kernel", "list") if probe["gone"]]
        self.assertEqual(len(gone), _LIST.read_text().count("[GONE]"))
        hits = self.profile()["xmit"]["hits"]
        self.load()  # and is armed again
        self.send(20)
        self.assert_hits_are_the_devices(hits)
        self.run_ok("delete", "my/xmit")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
