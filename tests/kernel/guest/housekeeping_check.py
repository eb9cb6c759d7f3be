"""What daemons that end, in whatever way, leave in tracefs, beside what is others'."""

import os
import signal
import unittest

from kernel_side import ROOT, Case, Opens, define, definitions, instances
from support import maps
from support.daemon import Daemon
from support.wait import wait_until

# The event probe holds the definition that it is on.
LINES = ["p:my/open do_sys_openat2 name=+u0(%si):string", "r:my/opened do_sys_openat2 $retval",
         "e:my/e sched.sched_switch a=$prev_pid", "s:took u64 lat", "e:my/on_took synthetic.took l=$lat", "sched:sched_switch"]


class Foreign:
    """Somebody else's tracing: an instance, a definition that is on in it, one that is on at the
    top, and names that look like ours."""

    def __init__(self):
        self.instance = ROOT / "instances" / "somebody"
        self.imitation = ROOT / "instances" / "probed-nothing"

    def __enter__(self):
        self.instance.mkdir()
        self.imitation.mkdir()
        for line in ("p:theirs/open do_sys_openat2", "p:probed_x/read vfs_read",
                     "r:theirs/opened do_sys_openat2"):
            assert define(line)
        self.switch = ROOT / "events/theirs/opened/enable"
        self.switch.write_text("1")
        (self.instance / "events/theirs/open/enable").write_text("1")
        return self

    def __exit__(self, *_):
        self.switch.write_text("0")
        self.instance.rmdir()
        self.imitation.rmdir()
        for name in ("theirs/open", "theirs/opened", "probed_x/read"):
            define(f"-:{name}")

    def lines(self):
        """Of its events, in its own buffer."""
        return (self.instance / "trace").read_text().count(": open: ")

    def assert_untouched(self, case):
        case.assertTrue(self.imitation.is_dir())
        case.assertEqual((self.instance / "events/theirs/open/enable").read_text(), "1\n")
        case.assertEqual(self.switch.read_text(), "1\n")
        case.assertEqual((self.instance / "tracing_on").read_text(), "1\n")
        text = (ROOT / "dynamic_events").read_text()
        for name in ("theirs/open", "theirs/opened", "probed_x/read"):
            case.assertIn(f":{name} ", text)


class Housekeeping(Case):
    def define_all(self, options=()):
        """With a trigger on top, which holds the definitions, too."""
        self.define(*LINES, options=options)
        self.run_ok("trigger", "my/open", "hist:keys=common_pid")
        self.assertEqual(len(definitions(self.pid)), 5)
        self.assertEqual(len(instances(self.pid)), 1)

    def left(self):
        return instances(self.pid) + definitions(self.pid)

    def test_killed_and_restarted(self):
        with Foreign() as foreign, Opens() as opens:
            self.define_all()
            opens.open(10)
            # The guard would clean up by itself; without it the next daemon does. Nobody starts
            # another guard in between.
            guard = self.guard()
            self.daemon.program.signal(signal.SIGSTOP)
            os.kill(guard, signal.SIGKILL)
            self.daemon.program.signal(signal.SIGKILL)
            self.daemon.program.finish(20)
            self.assertEqual(len(self.left()), 6)
            with Daemon() as second:
                wait_until(lambda: not self.left(), 20, "the next one has swept")
                foreign.assert_untouched(self)
                self.assertEqual(second.run("list").out, "")
                log = second.program.err + second.program.out
                self.assertIn("1 instances, 5 definitions", log)
            foreign.assert_untouched(self)
            self.assertGreaterEqual(foreign.lines(), 10)

    def guard(self):
        """It is called probed-guard and is a child of the daemon or was one."""
        for path in ROOT.parent.parent.parent.joinpath("proc").glob("[0-9]*"):
            try:
                if (path / "comm").read_text() == "probed-guard\n":
                    return int(path.name)
            except FileNotFoundError:
                pass
        raise AssertionError("there is no guard")

    def test_a_living_daemon_is_not_swept(self):
        self.define_all()
        with Daemon() as second:
            self.assertEqual(second.run("list").out, "")
            self.assertEqual(len(self.left()), 6)
            answer = second.run("define", "-e", LINES[0])
            self.assertEqual(answer.code, 0, answer.err)
        self.assertEqual(len(self.left()), 6)

    def test_sigterm(self):
        with Foreign() as foreign, Opens() as opens:
            self.run_ok("attach", "--pid", str(opens.pid))
            self.define_all()
            self.run_ok("define", "--pid", str(opens.pid), "-e", f"p:u/one {opens.path}:open_one")
            opens.open(10)
            self.daemon.program.signal(signal.SIGTERM)
            self.assertEqual(self.daemon.program.finish(20), 0)
            self.assertEqual(self.left(), [])
            foreign.assert_untouched(self)
            self.assertEqual(maps.changed_text(opens.pid), [])

    def test_others_events_are_not_shown(self):
        """Neither their records nor their definitions."""
        with Foreign() as foreign, Opens() as opens:
            session = self.start_tracing([LINES[0]], "--filter", f"common_pid == {opens.pid}")
            self.assertEqual([probe["group"] for probe in self.objects("list")], ["my"])
            opens.open(50)
            self.end_tracing(session)
            self.assertEqual({hit["event"] for hit in session.objects}, {"open"})
            self.assertEqual({hit["group"] for hit in session.objects}, {"my"})
            self.assertEqual(len(session.objects), 50)
            self.assertGreaterEqual(foreign.lines(), 50)
            top = (ROOT / "trace").read_text()
            self.assertNotIn(": open: ", top)


if __name__ == "__main__":
    unittest.main()
