"""redis-server under load: attach, count against its own statistics, detach."""

import subprocess
import tempfile
import unittest

from support import elf, maps, probectl, trace
from support.process import Program, is_running_free
from support.wait import wait_until

PROGRAM = "/usr/bin/redis-check-rdb"  # redis-server is a link to it


class Redis(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="probed-redis-")
        self.socket = f"{self.folder.name}/redis.sock"
        self.server = Program(["/usr/bin/redis-server", "--port", "0", "--unixsocket", self.socket,
                               "--save", "", "--dir", self.folder.name])
        self.server.wait_for("accept connections", 20)
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(self.server.__exit__)

    def client(self, *words):
        return subprocess.run(["/usr/bin/redis-cli", "-s", self.socket, *words],
                              capture_output=True, text=True, timeout=30, check=True).stdout

    def commands_processed(self):
        for line in self.client("INFO", "stats").splitlines():
            if line.startswith("total_commands_processed:"):
                return int(line.split(":")[1])
        raise AssertionError("no total_commands_processed")

    def definitions(self):
        place = f"{PROGRAM}:{elf.offset(PROGRAM, 'processCommand'):#x}"
        return [f"p:redis/cmd {place} client=%di", f"r:redis/cmd_ret {place} $retval:s32"]

    def assert_left_alone(self):
        wait_until(lambda: is_running_free(self.server.pid), 5, "redis runs free")
        self.assertEqual(maps.changed_text(self.server.pid), [])
        self.assertEqual(self.client("PING").strip(), "PONG")

    def test_counts_equal_the_servers_own(self):
        site = maps.load_base(self.server.pid, PROGRAM) + \
            elf.load(PROGRAM).symbols["processCommand"].address
        with probectl.Attached(self.server.pid, self.definitions(), armed=site) as session:
            before = self.commands_processed()
            self.client("-r", "200", "SET", "key", "value")
            after = self.commands_processed()
            expected = after - before + 1  # the last INFO does not count itself
            session.wait_for_records(2 * expected)
            self.assertEqual(session.detach(), 0, session.program.err)
            self.assertEqual(trace.counts(session.records), {"cmd": expected, "cmd_ret": expected})
            self.assertEqual({r.arguments for r in session.records if r.event == "cmd_ret"},
                             {"arg1=0"})
        self.assertGreater(expected, 200)
        self.assert_left_alone()

    def test_attach_and_detach_under_load(self):
        with Program(["/usr/bin/redis-benchmark", "-s", self.socket, "-n", "60000", "-c", "20",
                      "-t", "set,get", "-q"]) as load:
            wait_until(lambda: self.server.process.poll() is None and
                       self.commands_processed() > 500, 20, "load")
            for _ in range(2):
                with probectl.Attached(self.server.pid, self.definitions(), "--count",
                                       "400") as session:
                    self.assertEqual(session.finish(30), 0, session.program.err)
                    self.assertEqual(len(session.records), 400)
            self.assertEqual(load.finish(60), 0, load.err)
            self.assertNotIn("rror", load.out)
        self.assert_left_alone()


if __name__ == "__main__":
    unittest.main()
