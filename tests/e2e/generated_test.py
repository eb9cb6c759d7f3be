"""Code that a compiler of other people's makes while its program runs."""

import json
import tempfile
import unittest

from support import probectl
from support.daemon import Daemon
from support.paths import PROBECTL
from support.process import Program, is_running_free
from support.wait import wait_until

# The loop of f becomes machine code, one pass an iteration; "made" says where the loop begins.
_SCRIPT = """
local util = require("jit.util")
local function f(n) local sum = 0 for i = 1, n do sum = sum + i end return sum end
local commands = {}
function commands.make()
  for i = 1, 20 do f(1000) end
  local _, address, loop = util.tracemc(1)
  if address < 0 then address = address + 2^32 end
  return "made", string.format("0x%x", address + loop)
end
function commands.run(n) return "sum", string.format("%d", f(tonumber(n))) end
function commands.flush() jit.flush() return "flushed", 0 end
io.stdout:setvbuf("no")
for line in io.lines() do
  local word, argument = line:match("(%w+) ?(%w*)")
  print(commands[word](argument))
end
"""


class Generated(unittest.TestCase):
    def setUp(self):
        self.daemon = self.enterContext(Daemon())
        script = self.enterContext(tempfile.NamedTemporaryFile("w", suffix=".lua"))
        script.write(_SCRIPT)
        script.flush()
        self.lua = self.enterContext(Program(["luajit", script.name]))

    def ask(self, line):
        """The second word of the answer."""
        seen = self.lua.out.count("\n")
        self.lua.say(line + "\n")
        wait_until(lambda: self.lua.out.count("\n") > seen, 20, f"an answer to {line}")
        return self.lua.out.splitlines()[seen].split("\t")[1]

    def probectl(self, *words, code=0):
        answer = self.daemon.run(*words)
        self.assertEqual(answer.code, code, answer.err)
        return answer

    def probe(self):
        return json.loads(self.probectl("list", "--json").out.splitlines()[0])

    def run_loop(self, times):
        """How many hits that came to; the sum is as Gauss has it."""
        before = self.probe()["hits"]
        self.assertEqual(self.ask(f"run {times}"), str(times * (times + 1) // 2))
        return self.probe()["hits"] - before

    def test_luajit(self):
        address = self.ask("make")
        place = f"{self.lua.pid}:{address}"
        refused = self.probectl("explain", place, code=5)
        self.assertIn(f"process {self.lua.pid} is not attached", refused.err)
        self.probectl("attach", "--pid", str(self.lua.pid))
        self.assertIn("mechanism    boosted", self.probectl("explain", place).out)
        pid = ("--pid", str(self.lua.pid))
        self.probectl("define", *pid, "-e", f"p:jit/loop {place} i=%bp:s32")
        # Some passes are made before the loop is entered, the same number each time.
        self.assertEqual(self.run_loop(3000) - self.run_loop(1000), 2000)
        self.assertGreater(self.run_loop(1000), 900)
        site = self.probectl("sites", *pid).out
        self.assertIn(f"{place}  boosted", site)
        # Its code is thrown away, and made again, often at the same address.
        self.ask("flush")
        hits = self.probe()["hits"]
        self.ask("make")
        self.assertEqual(self.run_loop(1000), 0)
        self.assertEqual((self.probe()["state"], self.probe()["hits"]), ("gone", hits))
        self.assertIn(f"{place}  [GONE]", self.probectl("sites", *pid).out)
        self.probectl("detach", *pid)
        self.assertTrue(is_running_free(self.lua.pid))
        self.assertEqual(self.ask("run 1000"), "500500")
        self.assertEqual(self.lua.finish(), 0)

    def test_gone_is_told_in_the_stream(self):
        place = f"{self.lua.pid}:{self.ask('make')}"
        self.probectl("attach", "--pid", str(self.lua.pid))
        self.probectl("define", "--pid", str(self.lua.pid), "-e", f"p:jit/loop {place}")
        command = [PROBECTL, "watch", "--format", "json"]
        env = {**probectl.environment(), "PROBED_ADDRESS": self.daemon.address}
        with Program(command, env=env) as watch:
            def watches():
                self.ask("run 100")
                return '"type":"hit"' in watch.out
            wait_until(watches, 20, "events are watched")
            self.ask("flush")
            self.assertIn("[GONE]", self.probectl("sites").out)
            watch.wait_for('"change":"site_gone"', 20)
            watch.wait_for("a probe is gone: " + place, 20, stream="err")


if __name__ == "__main__":
    unittest.main()
