"""Probes in the kernel through the real daemon: what they leave in tracefs, and what they do not."""

import json
import os
import re
import signal
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import disassembly, maps, probectl, trace
from support.daemon import Daemon
from support.paths import target
from support.process import Program
from support.tracefs import ROOT, Tracefs
from support.wait import wait_until


def setUpModule():
    Tracefs()  # skips where tracefs cannot be written


def instances(pid):
    return list(ROOT.glob(f"instances/probed-{pid}-*"))


def definitions(pid):
    lines = (ROOT / "dynamic_events").read_text("latin-1").splitlines()
    return [line for line in lines if f"probed_{pid}_" in line]


def offset_of_code(path):
    """Of the first executable segment of a program."""
    out = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, timeout=30,
                         check=True).stdout
    load = next(line.split() for line in out.splitlines() if "LOAD" in line and " E " in line)
    return int(load[1], 16)


class Kernel(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.daemon.__enter__()
        self.addCleanup(self.daemon.__exit__)
        self.pid = self.daemon.program.pid
        folder = tempfile.TemporaryDirectory(prefix="probed-kernel-")
        self.addCleanup(folder.cleanup)
        self.program = shutil.copy("/bin/true", f"{folder.name}/true")

    def run_ok(self, *words):
        result = self.daemon.run(*words)
        self.assertEqual(result.code, 0, result.err)
        return result.out

    def listed(self, verb="list"):
        return [json.loads(line) for line in self.run_ok(verb, "--json").splitlines()]

    def kernel_uprobe(self, event):
        """On the first code of a program that nobody else runs: once each time it is run."""
        return f"p:my/{event} {self.program}:{offset_of_code(self.program):#x} sp=%sp"

    def start_tracing(self, *options):
        tracer = Program([probectl.PROBECTL, "trace", "-e", self.kernel_uprobe("a"), "--mechanism",
                          "kernel", *options],
                         env={**probectl.environment(), "PROBED_ADDRESS": self.daemon.address})
        self.addCleanup(tracer.__exit__)
        wait_until(lambda: self.listed() and self.listed()[0]["enabled"], 20, "the probe is on")
        return tracer

    def event_file(self, name):
        return next(instance / "events" / name for instance in instances(self.pid)).read_text()


class Probes(Kernel):
    def test_are_listed_and_leave_nothing(self):
        self.assertEqual(instances(self.pid), [])
        self.run_ok("define", "-e", "sched:sched_switch", "-e", self.kernel_uprobe("a"),
                    "--mechanism", "kernel")
        probes = self.listed()
        self.assertEqual([probe["mechanism"] for probe in probes], ["kernel", "kernel"])
        self.assertEqual({probe["state"] for probe in probes}, {"armed"})
        self.assertEqual({(probe["group"], probe["event"]) for probe in probes},
                         {("sched", "sched_switch"), ("my", "a")})
        self.assertRegex(self.run_ok("list", "--definitions"),
                         r"(?m)^p:my/a /\S+true:0x0000000000\w+ sp=%sp$")
        self.assertEqual(len(definitions(self.pid)), 1)
        self.assertEqual({site["mechanism"] for site in self.listed("sites")}, {"kernel"})
        self.assertEqual(self.event_file("sched/sched_switch/enable"), "1\n")
        self.run_ok("disable", "sched_switch")
        self.assertEqual(self.event_file("sched/sched_switch/enable"), "0\n")
        self.run_ok("enable", "sched_switch")
        self.assertEqual(self.event_file("sched/sched_switch/enable"), "1\n")
        self.run_ok("delete", "my/a", "sched/")
        self.assertEqual((instances(self.pid), definitions(self.pid)), ([], []))

    def test_never_stand_on_what_the_daemon_has_changed(self):
        sleep = shutil.copy(shutil.which("sleep"), Path(self.program).parent)
        at = offset_of_code(sleep)
        in_kernel = ("define", "--mechanism", "kernel", "--disabled", "-e")
        with Program([sleep, "60"]) as program:
            self.run_ok("attach", "--pid", program.pid)
            self.run_ok("define", "--pid", program.pid, "-e", f"p:my/ours {sleep}:{at:#x}")
            refused = self.daemon.run(*in_kernel, f"p:my/theirs {sleep}:{at:#x}")
            self.assertIn("PLACE_IN_USE", refused.err)
            self.assertEqual(definitions(self.pid), [])
            self.run_ok(*in_kernel, f"p:my/far {sleep}:{at + 64:#x}")
            self.run_ok("delete", "my/ours")
            self.run_ok(*in_kernel, f"p:my/theirs {sleep}:{at:#x}")
            self.run_ok("define", "--pid", program.pid, "-e", f"p:my/ours {sleep}:{at:#x}")
            refused = self.daemon.run("enable", "my/theirs")
            self.assertIn("PLACE_IN_USE", refused.err)
            self.run_ok("enable", "my/far")
            self.run_ok("detach", "--pid", program.pid)

    def test_never_stand_in_padding_that_a_jump_leads_through(self):
        path = shutil.copy(target("counter"), Path(self.program).parent)
        at = self.place_of_a_short_jump(path)
        with Program([path]) as program:
            program.wait_for("ready")
            self.run_ok("attach", "--pid", program.pid)
            self.run_ok("define", "--pid", program.pid, "-e", f"p:my/ours {path}:{at:#x}")
            self.assertEqual(self.daemon.settled_sites()[0]["mechanism"], "optimized")
            base = maps.load_base(program.pid, path)
            with open(f"/proc/{program.pid}/mem", "rb") as memory:
                memory.seek(base + at)
                jump = memory.read(2)
            self.assertEqual(jump[0], 0xeb)
            island = at + 2 + int.from_bytes(jump[1:], "little", signed=True)
            for offset in (island, island + 4):
                refused = self.daemon.run("define", "--mechanism", "kernel", "--disabled", "-e",
                                          f"p:my/theirs {path}:{offset:#x}")
                self.assertIn("PLACE_IN_USE", refused.err)
            self.assertEqual(definitions(self.pid), [])
            self.run_ok("delete", "my/ours")
            self.run_ok("define", "--mechanism", "kernel", "--disabled", "-e",
                        f"p:my/theirs {path}:{island:#x}")

    def test_never_stand_where_the_engine_itself_has_a_breakpoint(self):
        """While a file is awaited the dynamic linker's _dl_debug_state is one such place."""
        path = shutil.copy(target("counter"), Path(self.program).parent)
        with Program([path]) as program:
            program.wait_for("ready")
            self.run_ok("attach", "--pid", program.pid)
            self.run_ok("define", "--pid", program.pid, "-e",
                        f"p:my/later {target('plugin')}:plugin_work")
            linker = next(mapping.path for mapping in maps.maps(program.pid)
                          if "ld-linux" in mapping.path)
            refused = self.daemon.run("define", "--mechanism", "kernel", "--disabled", "-e",
                                      f"p:my/theirs {linker}:_dl_debug_state")
            self.assertIn("PLACE_IN_USE", refused.err)
            self.run_ok("detach", "--pid", program.pid)
            self.run_ok("define", "--mechanism", "kernel", "--disabled", "-e",
                        f"p:my/theirs {linker}:_dl_debug_state")

    def place_of_a_short_jump(self, path):
        """The first instruction of main where nothing but two bytes of a jump fit."""
        for at, _, _ in disassembly.boundaries(path, lambda name: name == "main"):
            place = json.loads(self.run_ok("explain", "--json", f"{path}:{at:#x}"))
            if place["tactic"] == "short jump":
                return at
        raise AssertionError("no place")

    def test_forms_that_kernel_uprobes_lack(self):
        """The words are the kernel's; what to do is ours, and fits what was asked for."""
        place = self.kernel_uprobe("a").replace("sp=%sp", "")
        for argument, message, hint in (
                ("$arg1", r"\$arg\* can be used only on function entry", r"no \$argN: write %di"),
                ("%xmm0:f64", "Unknown type", "no %xmmN, f32, f64"),
                ("+0(%di):bytes(%si)", "Unknown type", r"bytes\(LENGTH\)")):
            with self.subTest(argument):
                refused = self.daemon.run("define", "-e", place + argument, "--mechanism", "kernel")
                self.assertRegex(refused.err, rf"(?s){message}.*{hint}.*leave --mechanism kernel out")
                self.assertNotIn("extended dialect", refused.err)

    def test_hits_are_counted_by_the_kernel(self):
        self.run_ok("define", "-e", self.kernel_uprobe("a"), "--mechanism", "kernel")
        for _ in range(5):
            subprocess.run([self.program], timeout=20, check=True)
        self.assertEqual(self.listed("profile")[0]["hits"], 5)
        kernel = [line.split()[-1] for line in (ROOT / "uprobe_profile").read_text().splitlines()
                  if line.split()[0] == self.program]
        self.assertEqual(kernel, ["5"])

    def test_filters_and_triggers_are_the_kernels(self):
        self.run_ok("define", "-e", "sched:sched_switch", "--filter", "prev_pid == 1")
        self.assertEqual(self.event_file("sched/sched_switch/filter"), "prev_pid == 1\n")
        refused = self.daemon.run("filter", "sched_switch", "nothing == 1")
        self.assertEqual(refused.code, 2)
        self.assertIn("Field not found", refused.err)
        self.assertRegex(refused.err, r"Command: nothing == 1\n +\^\n")
        self.assertEqual(self.run_ok("filter", "sched_switch"), "prev_pid == 1\n")
        self.run_ok("trigger", "sched_switch", "traceoff:2 if next_pid == 1")
        self.assertEqual(self.run_ok("trigger", "sched_switch"),
                         "traceoff:count=2 if next_pid == 1\n")
        self.assertEqual(self.daemon.run("trigger", "sched_switch", "nothing").code, 2)
        self.run_ok("trigger", "sched_switch", "!traceoff")
        self.assertEqual(self.run_ok("trigger", "sched_switch"), "")

    def test_refusals_have_the_kernels_words_and_caret(self):
        refused = self.daemon.run("define", "--mechanism", "kernel", "--dialect", "kernel", "-e",
                                  "sched:sched_switch", "-e", "e:my/x no_such.event")
        self.assertNotEqual(refused.code, 0)
        if (ROOT / "kprobe_events").exists():
            self.assertIn(refused.code, (2, 5))  # EINVAL or ENOENT, as the kernel says
        self.assertEqual((instances(self.pid), definitions(self.pid)), ([], []))
        missing = self.daemon.run("define", "-e", "sched:sched_swich")
        self.assertEqual(missing.code, 5, missing.err)
        self.assertIn("sched:sched_switch", missing.err)

    def test_a_second_probe_of_an_event(self):
        """Is one more probe of that name, if the kernel would append it; as on programs."""
        first = self.kernel_uprobe("a")
        second = f"p:my/a {self.program}:{offset_of_code(self.program) + 4:#x} sp=%sp"
        self.run_ok("define", "-e", first, "--mechanism", "kernel", "--disabled")
        for line, reason, caret in [(first, "SAME_PROBE", "p:"),
                                    (second.replace("p:", "r:", 1), "DIFF_PROBE_TYPE", "r:"),
                                    (second + ":u8", "DIFF_ARG_TYPE", "sp=%sp:u8"),
                                    (second.replace("sp=", "ps="), "DIFF_ARG_TYPE", "ps=")]:
            with self.subTest(line):
                refused = self.daemon.run("define", "-e", line, "--mechanism", "kernel")
                self.assertEqual(refused.code, 6, refused.err)
                self.assertIn(f"why: {reason} (errno=17)", refused.err)
                command, blamed = refused.err.split("\n")[1:3]
                self.assertTrue(command[blamed.index("^"):].startswith(caret), refused.err)
        self.run_ok("define", "-e", second, "--mechanism", "kernel", "--disabled")
        probes = self.listed()
        self.assertEqual([(probe["group"], probe["event"]) for probe in probes], [("my", "a")] * 2)
        self.assertEqual([probe["definition"].split(" ", 1)[0] for probe in probes], ["p:my/a"] * 2)
        self.assertEqual(len(definitions(self.pid)), 2)
        self.run_ok("enable", "my/a")
        subprocess.run([self.program], timeout=20, check=True)
        self.assertEqual(self.listed("profile")[0]["hits"], 1)
        self.run_ok("delete", probes[0]["name"])
        self.assertEqual(len(definitions(self.pid)), 1)
        self.run_ok("delete", "my/")
        self.assertEqual(definitions(self.pid), [])

    def test_formats_are_the_kernels(self):
        line = f"{self.program}:{offset_of_code(self.program):#x} sp=%sp s=+0(%sp):string " \
               "b=%ax:b4@2/8 a=+0(%sp):u16[3] c=$comm n=%di:s8"
        self.run_ok("define", "-e", "sched:sched_switch", "-e", f"p:my/a {line}", "-e",
                    f"r:my/b {line}", "--mechanism", "kernel", "--disabled")
        self.assertEqual(self.run_ok("format", "sched_switch"),
                         self.event_file("sched/sched_switch/format"))
        for event in ("a", "b"):
            group = next(path for path in (ROOT / "events").glob(f"probed_{self.pid}_*"))
            self.assertEqual(self.run_ok("format", f"my/{event}"),
                             (group / event / "format").read_text())
        with Program(["sleep", "60"]) as program:
            self.run_ok("attach", "--pid", str(program.pid))
            self.run_ok("define", "--pid", str(program.pid), "-e", f"p:user/a {line}", "-e",
                        f"r:user/b {line}", "--disabled")
            for event in ("a", "b"):
                user, kernel = (self.run_ok("format", f"{group}/{event}").split("\n", 2)
                                for group in ("user", "my"))
                self.assertEqual((user[0], user[2]), (kernel[0], kernel[2]))
                self.assertRegex(user[1], "^ID: [0-9]+$")
        self.assertEqual(self.daemon.run("format", "nothing").code, 5)

    def test_a_file_without_a_process_is_not_silently_a_kernel_uprobe(self):
        refused = self.daemon.run("define", "-e", self.kernel_uprobe("a"))
        self.assertEqual(refused.code, 2, refused.err)
        self.assertIn("--mechanism kernel", refused.err)
        self.assertEqual(instances(self.pid), [])

    def test_mixed_requests_are_all_or_none(self):
        with Program(["python3", "-c", "input()"]) as program:
            self.run_ok("attach", "--pid", str(program.pid))
            user = "p:my/user libc.so.6:getpid"
            for bad in ("sched:no_such_event", "p:my/bad libc.so.6:no_such_function"):
                refused = self.daemon.run("define", "--pid", str(program.pid), "-e", user, "-e",
                                          "sched:sched_switch", "-e", bad)
                self.assertNotEqual(refused.code, 0)
                self.assertEqual(self.listed(), [])
                self.assertEqual(instances(self.pid), [])
            self.run_ok("define", "--pid", str(program.pid), "-e", user, "-e", "sched:sched_switch")
            self.assertEqual(len(self.listed()), 2)
            self.assertEqual(len(instances(self.pid)), 1)


class Events(Kernel):
    def run_program(self, times):
        """Pids of the runs, in order."""
        pids = []
        for _ in range(times):
            with subprocess.Popen([self.program]) as process:
                pids.append(process.pid)
        return pids

    def test_events_come_in_the_stream(self):
        tracer = self.start_tracing("--count", "5")
        pids = self.run_program(5)
        self.assertEqual(tracer.finish(20), 0, tracer.err)
        records = trace.records(tracer.out)
        self.assertEqual([record.pid for record in records], pids)
        # Not the name: of a program that is gone when its record is read it may be unknown.
        self.assertEqual({record.event for record in records}, {"a"})
        self.assertRegex(records[0].arguments, r"^sp=0x7f[0-9a-f]+$")

    def test_all_that_happened_before_the_end_is_there(self):
        tracer = self.start_tracing()
        pids = self.run_program(20)
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.finish(20), 0, tracer.err)
        self.assertEqual([record.pid for record in trace.records(tracer.out)], pids)
        self.assertIn("p:my/a  hits 20  shown 20  missed 0  lost 0", tracer.err)


    def test_other_peoples_events_are_not_shown(self):
        """The same event, on in somebody else's instance for everybody, and what was written there."""
        with Tracefs() as other:
            (other.instance / "events/sched/sched_process_exec/enable").write_text("1")
            (other.instance / "events/sched/sched_process_exit/enable").write_text("1")
            (other.instance / "trace_marker").write_text("not ours\n")
            tracer = Program([probectl.PROBECTL, "trace", "-e", "sched:sched_process_exec",
                              "--format", "json", "--filter", f'filename == "{self.program}"'],
                             env={**probectl.environment(), "PROBED_ADDRESS": self.daemon.address})
            self.addCleanup(tracer.__exit__)
            wait_until(lambda: self.listed() and self.listed()[0]["enabled"], 20, "it is on")
            pids = self.run_program(5)
            subprocess.run(["/bin/true"], timeout=20, check=True)
            tracer.signal(signal.SIGINT)
            self.assertEqual(tracer.finish(20), 0, tracer.err)
            hits = [json.loads(line) for line in tracer.out.splitlines()]
            self.assertEqual([(hit["event"], hit["args"]["pid"]) for hit in hits],
                             [("sched_process_exec", pid) for pid in pids])
            theirs = other.text()
            for word in ("sched_process_exec: filename=/bin/true", "sched_process_exit",
                         "not ours"):
                self.assertIn(word, theirs)

    @unittest.skipUnless(shutil.which("strace"), "the emulated machines have none")
    def test_a_refusal_is_the_end_of_it(self):
        """No other way is tried: of what the daemon changes all is taken back, and the program on
        whose code the kernel refuses a uprobe has none of ours either."""
        with Program(["sleep", "60"]) as program:
            self.run_ok("attach", "--pid", str(program.pid))
            before = maps.changed_text(program.pid)  # by the attachment
            everything = (ROOT / "dynamic_events").read_text()
            with Program(["strace", "-f", "-qq", "-e", "trace=write", "-y", "-p", str(self.pid)]) \
                    as strace:
                wait_until(lambda: "TracerPid:\t0" not in Path(
                    f"/proc/{self.pid}/status").read_text(), 20, "strace is there")
                # Taken, but cannot be switched on: it is behind the file's end.
                refused = self.daemon.run("define", "-e", f"p:my/bad {self.program}:0x7fffffff",
                                          "--mechanism", "kernel")
                self.assertNotEqual(refused.code, 0, refused.err)
                self.assertIn("KERNEL_ENABLE_REFUSED", refused.err)
                strace.signal(signal.SIGINT)
                strace.finish(20)
            written = re.findall(rf'<{ROOT}/(\S+)>, "([^"]*)"', strace.err)
            self.assertEqual([text[:2] for name, text in written if name == "dynamic_events"],
                             ["p:", "-:"], strace.err)
            self.assertEqual([text for name, text in written if name.endswith("/enable")],
                             ["1", "0"], written)
            self.assertEqual((ROOT / "dynamic_events").read_text(), everything)
            self.assertEqual((instances(self.pid), self.listed()), ([], []))
            self.assertEqual(maps.changed_text(program.pid), before)


class Endings(Kernel):
    def left(self):
        return instances(self.pid) + definitions(self.pid)

    def test_a_session_that_is_killed_leaves_nothing(self):
        tracer = self.start_tracing()
        self.assertEqual(len(self.left()), 2)
        tracer.signal(signal.SIGKILL)
        wait_until(lambda: not self.left(), 20, "the probe is gone")

    def test_a_session_that_is_interrupted_leaves_nothing(self):
        tracer = self.start_tracing()
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.finish(20), 0, tracer.err)
        self.assertEqual(self.left(), [])
        self.assertRegex(tracer.err, r"p:my/a  hits \d+")

    def test_a_daemon_that_is_told_to_end_leaves_nothing(self):
        self.run_ok("define", "-e", "sched:sched_switch", "-e", self.kernel_uprobe("a"),
                    "--mechanism", "kernel")
        self.daemon.program.signal(signal.SIGTERM)
        self.daemon.program.finish(20)
        self.assertEqual(self.left(), [])

    def test_what_a_killed_daemon_has_left_is_taken_away(self):
        self.run_ok("define", "-e", "sched:sched_switch", "-e", self.kernel_uprobe("a"),
                    "--mechanism", "kernel")
        others = ROOT / "instances" / f"not-probed-{os.getpid()}"
        others.mkdir()
        self.addCleanup(others.rmdir)
        self.daemon.program.signal(signal.SIGKILL)
        wait_until(lambda: not self.left(), 20, "the guard took it away")
        self.assertTrue(others.is_dir())


if __name__ == "__main__":
    unittest.main()
