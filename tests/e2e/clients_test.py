"""One daemon, several clients."""

import signal
import unittest

from attach_test import Counter
from support import maps, probectl, trace
from support.daemon import Daemon
from support.process import is_running_free, threads, tracer_of
from support.wait import wait_until


class Clients(unittest.TestCase):
    def test_two_clients_on_one_target(self):
        with Daemon() as daemon, Counter() as counter:
            first = probectl.Attached(counter.pid, [f"p:one/w {counter.path}:work n=%di:u64"],
                                      address=daemon.address, armed=counter.site)
            with first:
                first.wait_for_records(20)
                second = probectl.Attached(counter.pid, [f"p:two/w {counter.path}:work n=%di:s64",
                                                         f"r:two/x {counter.path}:work"],
                                           address=daemon.address)
                with second:
                    second.wait_for_records(40)
                    self.assertIn(tracer_of(counter.pid), threads(daemon.program.pid))
                    self.assertEqual(second.detach(), 0, second.program.err)
                    self.assertIn(f"our probes are gone, and others hold on to {counter.pid} (",
                                  second.program.err)
                    self.assertEqual(set(trace.counts(second.records)), {"w", "x"})
                seen = len(first.records)
                first.wait_for_records(seen + 50)
                self.assertEqual(first.detach(), 0, first.program.err)
                self.assertIn(f"detached from {counter.pid} (", first.program.err)
                numbers = [int(r.arguments.split("=")[1]) for r in first.records]
                self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
            counter.assert_unharmed(self)

    def test_client_killed_under_a_daemon(self):
        with Daemon() as daemon, Counter() as counter:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work"],
                                   address=daemon.address, armed=counter.site) as session:
                session.wait_for_records(20)
                session.program.signal(signal.SIGKILL)
                session.program.finish(10, close_input=False)
            counter.assert_unharmed(self)
            self.assertEqual(daemon.run("status").code, 0)

    def test_daemon_ended_by_sigterm_gives_everything_back(self):
        with Counter() as counter, Daemon() as daemon:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work",
                                                 f"r:e/x {counter.path}:work"],
                                   address=daemon.address, armed=counter.site) as session:
                session.wait_for_records(20)
                daemon.program.signal(signal.SIGTERM)
                self.assertEqual(daemon.program.finish(10), 0, daemon.program.err)
                self.assertNotEqual(session.finish(10), 0)
            counter.assert_unharmed(self)

    def test_filter(self):
        with Daemon() as daemon, Counter() as counter:
            with probectl.Attached(counter.pid, [f"p:e/w {counter.path}:work n=%di:u64",
                                                 f"p:e/m {counter.path}:work m=%di:u64"],
                                   address=daemon.address, armed=counter.site) as session:
                session.wait_for_records(4)

                def filtered(*words, code=0):
                    result = daemon.run("filter", *words)
                    self.assertEqual(result.code, code, result.err)
                    return result

                self.assertEqual(filtered("e/w").out, "none\n")
                filtered("e/w", "n % 2", code=2)
                filtered("e/w", "n & 1")
                self.assertEqual(filtered("e/w").out, "n & 1\n")
                partial = filtered("e/", "m == 0", code=7)
                self.assertIn("the fields are n", partial.err)
                self.assertIn("  if m == 0", daemon.run("list", "--pid", str(counter.pid)).out)

                def latest():
                    return {(r.event, int(r.arguments[2:]) % 2) for r in session.records[-20:]}

                wait_until(lambda: latest() == {("w", 1)}, 10)
                filtered("e/", "0")
                wait_until(lambda: latest() == {("w", 0), ("w", 1), ("m", 0), ("m", 1)}, 10)
                self.assertEqual(session.detach(), 0, session.program.err)
                self.assertRegex(session.program.err, r"e/m  hits .* lost 0  filtered [1-9]")
            counter.assert_unharmed(self)

    def test_control_verbs(self):
        """attach that stays, define, list, disable, enable, profile, sites, delete, detach."""
        with Daemon() as daemon, Counter() as counter:
            pid = str(counter.pid)
            place = f"{counter.path}:work"

            def done(*words, expect=0, **more):
                result = daemon.run(*words, **more)
                self.assertEqual(result.code, expect, f"{words}: {result.out}{result.err}")
                return result.out

            with probectl.Attached(counter.pid, [f"p:e/hold {place}"],
                                   address=daemon.address, armed=counter.site) as session:
                done("define", "--pid", pid, "-e", f"p:e/w {place} n=%di")
                self.assertIn("e/w", done("list", "--pid", pid))
                self.assertIn(pid, done("targets"))
                self.assertIn("work", done("sites", "--pid", pid))
                hits = self.hits(done("profile", "--pid", pid), "w")
                wait_until(lambda: self.hits(done("profile", "--pid", pid), "w") > hits, 10)
                columns = next(line.split() for line in done("profile", "--pid", pid).splitlines()
                               if " w " in line)
                self.assertEqual((columns[0], *columns[3:5]), (str(counter.path), "0", "0"))
                self.assertIn(columns[5], ("boosted", "optimized"))
                for which in (("--pid", pid), ("--probe", "e/w"), ("--pid", pid, "--probe", "w")):
                    lines = done("watch", "--format", "json", "--count", "3", *which).splitlines()
                    self.assertEqual(len([line for line in lines if '"type":"hit"' in line]), 3)
                    self.assertEqual("--probe" in which,
                                     all('"event":"w"' in line for line in lines
                                         if '"type":"hit"' in line))
                done("watch", "--probe", "e/nothing", "--duration", "1", expect=5)
                done("disable", "--pid", pid, "e/w")
                still = self.hits(done("profile", "--pid", pid), "w")
                session.wait_for_records(len(session.records) + 50)
                self.assertEqual(self.hits(done("profile", "--pid", pid), "w"), still)
                done("enable", "--pid", pid, "e/w")
                wait_until(lambda: self.hits(done("profile", "--pid", pid), "w") > still, 10)
                done("delete", "--pid", pid, "e/w")
                self.assertNotIn("e/w ", done("list", "--pid", pid))
                self.assertIn("e/hold", done("list", "--pid", pid))
                self.assertEqual(session.detach(), 0, session.program.err)
            wait_until(lambda: is_running_free(counter.pid), 5)
            self.assertEqual(maps.changed_text(counter.pid), [])
            counter.assert_unharmed(self)

    @staticmethod
    def hits(profile, event):
        """The count in a line of uprobe_profile's layout: path, event, count."""
        for line in profile.splitlines():
            words = line.split()
            if len(words) >= 3 and words[1] == event:
                return int(words[2])
        raise AssertionError(f"{event} is not in {profile!r}")


if __name__ == "__main__":
    unittest.main()
