"""What probectl tells of the kernel, against what the kernel does."""

import json
import os
import random
import unittest
from pathlib import Path

from support.daemon import Daemon
from support.tracefs import ROOT

_KPROBES = Path("/sys/kernel/debug/kprobes")


def define(line):
    """Whether kprobe_events takes the line; never truncates."""
    fd = os.open(ROOT / "kprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, line.encode() + b"\n")
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def lines(daemon, *words):
    answer = daemon.run(*words, "--json", seconds=60)
    assert answer.code == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


class Facts(unittest.TestCase):
    def test_kernel_list_and_blacklist(self):
        self.assertTrue(define("p:facts/entry do_sys_openat2"))
        self.assertTrue(define("r:facts/exit vfs_read"))
        switch = ROOT / "events" / "facts" / "entry" / "enable"
        try:
            switch.write_text("1")
            with Daemon() as daemon:
                text = daemon.run("kernel", "list")
                kernels = {" ".join(line.split()) for line in
                           (_KPROBES / "list").read_text().splitlines()}
                self.assertEqual({" ".join(line.split()) for line in text.out.splitlines()}, kernels)
                self.assertEqual(len(kernels), 2)
                self.assertIn("kprobes are on, jumps are on", text.err)
                probes = {probe["place"]: probe for probe in lines(daemon, "kernel", "list")}
                self.assertTrue(probes["vfs_read+0x0"]["disabled"])
                self.assertFalse(probes["do_sys_openat2+0x0"]["disabled"])
                ranges = lines(daemon, "kernel", "blacklist")
                self.assertEqual(len(ranges),
                                 len((_KPROBES / "blacklist").read_text().splitlines()))
        finally:
            switch.write_text("0")
            define("-:facts/entry")
            define("-:facts/exit")

    def test_obstacles_are_the_kernels(self):
        """Of functions drawn at random, and of those on the blacklist, it refuses what we say that
        it refuses, and no other."""
        with Daemon() as daemon:
            symbols = lines(daemon, "symbols", "--kernel", "--limit", "1000000")
        names = {}
        for symbol in symbols:
            names[symbol["name"]] = names.get(symbol["name"], 0) + 1
        rng = random.Random(6)
        single = [s for s in symbols if names[s["name"]] == 1 and s["module"] == "vmlinux"
                  and s["name"].isidentifier()]
        hindered = [s for s in single if s.get("obstacle")]
        drawn = rng.sample(single, 150) + rng.sample(hindered, 150)
        wrong = []
        for number, symbol in enumerate(drawn):
            taken = define(f"p:facts/f{number} {symbol['name']}")
            if taken:
                define(f"-:facts/f{number}")
            if taken == bool(symbol.get("obstacle")):
                wrong.append((symbol["name"], symbol.get("obstacle"), taken))
        self.assertEqual(wrong, [])

    def test_explain(self):
        with Daemon() as daemon:
            def explain(place):
                return daemon.run("explain", "--kernel", place, seconds=60)
            forbidden = (_KPROBES / "blacklist").read_text().split("\t")[1].split("\n")[0]
            self.assertIn("blacklist", explain(forbidden).out)
            self.assertIn("mechanism    kernel", explain("do_sys_openat2").out)
            self.assertIn("outside the function", explain("do_sys_openat2+0x100000").out)
            self.assertIn("KERNEL_SYMBOL_NOT_FOUND", explain("do_sys_openat3x").err)
