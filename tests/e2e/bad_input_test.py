"""What a user can get wrong: an exit code by the table, a message that says what to try, and a target
that is exactly as it was."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from attach_test import Counter
from support import disassembly, elf, maps, probectl
from support.daemon import Daemon
from support.paths import target
from support.process import Program, is_running_free, status
from support.wait import wait_until

USAGE, CONNECT, PERMISSION, NOT_FOUND, PRECONDITION = 2, 3, 4, 5, 6
NOBODY = 65534


class BadInput(unittest.TestCase):
    def refused(self, pid, definitions, codes, pattern, *options):
        """attach must fail with one of `codes` and say something that matches `pattern`."""
        with tempfile.NamedTemporaryFile("w", encoding="latin-1", suffix=".probes") as file:
            file.write("".join(line + "\n" for line in definitions))
            file.flush()
            result = probectl.probectl("attach", "--pid", str(pid), "-f", file.name,
                                       "--duration", "1", *options)
        self.assertIn(result.code, codes, result.err)
        self.assertRegex(result.err, pattern)
        self.assertNotRegex(result.err, "/proc/[0-9]+/root", "paths are the target's")
        self.assertEqual(result.out, "")
        return result.err


class Files(BadInput):
    """Definitions that name places where no probe can be."""

    @classmethod
    def setUpClass(cls):
        cls.path = target("counter")
        cls.file = elf.load(str(cls.path))

    def refuse_on_counter(self, definitions, pattern, *options, codes=(USAGE, NOT_FOUND,
                                                                      PRECONDITION)):
        with Counter() as counter:
            text = self.refused(counter.pid, definitions, codes, pattern, *options)
            counter.assert_unharmed(self)
            return text

    def test_offset_past_the_file(self):
        self.refuse_on_counter([f"p:e/x {self.path}:{len(self.file.bytes) + 100:#x}"],
                               "(?i)past|beyond|outside|end of")

    def test_address_taken_for_an_offset(self):
        path = target("values", "gcc-O1-nopie-nocf")
        address = elf.load(str(path)).symbols["probe_me"].address
        with Program([path, "1", "wait"]) as program:
            program.wait_for("ready")
            text = self.refused(program.pid, [f"p:e/x {path}:{address:#x}"],
                                (USAGE, NOT_FOUND, PRECONDITION), "(?i)offset")
            self.assertIn(f"{elf.offset(path, 'probe_me'):#x}", text)

    def test_data_is_not_code(self):
        data = next(s for s in self.file.segments if not s.flags & elf.PF_X and s.flags & 2)
        self.refuse_on_counter([f"p:e/x {self.path}:{data.offset + 8:#x}"], "(?i)executable")

    def test_inside_an_instruction(self):
        places = disassembly.boundaries(self.path, lambda name: name == "main")
        at = next(at for at, code, _ in places if len(code) > 3)
        self.refuse_on_counter([f"p:e/x {self.path}:{at + 1:#x}"], "--force|force|boundary")

    def test_truncated_file(self):
        with tempfile.TemporaryDirectory() as folder:
            cut = Path(folder) / "cut.so"
            for size in (3, 40, 70, 700, len(self.file.bytes) // 2):
                cut.write_bytes(self.file.bytes[:size])
                with self.subTest(size):
                    self.refuse_on_counter([f"p:e/x {cut}:work"], "cut.so")

    def test_file_full_of_nonsense(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = Path(folder) / "bad.so"
            for seed in (0x00, 0x41, 0xff):
                # A good ELF header, then sizes and offsets that are absurd.
                bad.write_bytes(self.file.bytes[:16] + bytes([3, 0, 62, 0]) + bytes([seed]) * 4000)
                with self.subTest(seed):
                    self.refuse_on_counter([f"p:e/x {bad}:work"], "bad.so")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to chroot")
    def test_paths_are_those_of_a_target_with_another_root(self):
        with tempfile.TemporaryDirectory() as root:
            for name, source in (("busybox", "/bin/busybox"), ("libc.so", "/etc/hostname")):
                shutil.copy(source, f"{root}/{name}")
            cut = Path(f"{root}/cut.so")
            cut.write_bytes(self.file.bytes[:700])
            with Program(["/usr/sbin/chroot", root, "/busybox", "sh", "-c",
                          "echo ready; read line; exit 0"]) as program:
                program.wait_for("ready")
                for place, pattern in (("/libc.so:main", "/libc.so is not an ELF file"),
                                       ("/cut.so:work", "/cut.so "),
                                       ("/busybox:work", "/busybox has no symbol work"),
                                       ("/busybox:0xffffffff", "past the end of /busybox"),
                                       ("libc.so.6:open", "no file called libc.so.6")):
                    with self.subTest(place):
                        text = self.refused(program.pid, [f"p:e/x {place}"], (USAGE, NOT_FOUND),
                                            pattern)
                        self.assertNotIn(root, text)
                self.assertEqual(program.finish(10), 0)

    def test_no_such_file_directory_and_plain_text(self):
        self.refuse_on_counter(["p:e/x /nonexistent/file:0x10"], "(?i)find the given file|no such")
        self.refuse_on_counter(["p:e/x /tmp:0x10"], "(?i)regular file")
        self.refuse_on_counter(["p:e/x /etc/hostname:main"], "(?i)elf")

    def test_symbol_that_is_not_there(self):
        text = self.refuse_on_counter([f"p:e/x {self.path}:wrok"], "wrok")
        self.assertIn("work", text, "a suggestion")

    def test_symbol_of_another_module(self):
        text = self.refuse_on_counter([f"p:e/x {self.path}:getaddrinfo"], "getaddrinfo")
        self.assertIn("libc.so.6", text)

    def test_malformed_lines_show_the_kernels_caret(self):
        cases = [("%zz", "Invalid register name"), ("%di:int", "Unknown type is specified"),
                 ("+8(%di", "Dereference brace is not closed"), ("a=", "No argument expression"),
                 ("$foo", "Invalid \\$-variable specified")]
        for argument, message in cases:
            with self.subTest(argument):
                text = self.refuse_on_counter([f"p:e/x {self.path}:0x1000 {argument}"], message,
                                              codes=(USAGE,))
                command, caret = text.split("Command: ")[1].split("\n")[:2]
                self.assertEqual(caret.strip(), "^")
                self.assertTrue(command.startswith("p:e/x "))

    def test_extended_forms_in_the_kernel_dialect(self):
        for argument in ("$arg1", "%xmm0:f64", "+0(%di):bytes(%si)"):
            with self.subTest(argument):
                self.refuse_on_counter([f"p:e/x {self.path}:0x1000 {argument}"], "(?i)extended",
                                       "--dialect", "kernel", codes=(USAGE,))

    def test_129_arguments(self):
        many = " ".join(f"a{i}=%di" for i in range(129))
        for dialect in ("kernel", "extended"):
            self.refuse_on_counter([f"p:e/x {self.path}:0x1000 {many}"], "(?i)too many arguments",
                                   "--dialect", dialect, codes=(USAGE,))

    def test_ten_thousand_lines_the_last_one_wrong(self):
        place = f"{self.path}:{self.file.symbols['work'].offset:#x}"
        lines = [f"p:e/n{i} {place} v=%di" for i in range(9999)] + [f"p:e/bad {place} v=%nope"]
        text = self.refuse_on_counter(lines, "Invalid register name", codes=(USAGE,))
        self.assertIn("10000", text)

    def test_int3_in_the_program_itself(self):
        path = target("faults")
        offset = elf.load(str(path)).symbols["int3_site"].offset
        with Program([path, "1", "wait"]) as program:
            program.wait_for("ready")
            self.refused(program.pid, [f"p:e/x {path}:{offset:#x}"], (USAGE, PRECONDITION),
                         "(?i)int3|breakpoint")
            self.assertEqual(maps.changed_text(program.pid), [])


class Processes(BadInput):
    """Targets that cannot be had. Everything about them is found by what the message says."""

    def place(self):
        return f"p:e/x {target('counter')}:work"

    def test_no_such_process(self):
        free = int(Path("/proc/sys/kernel/pid_max").read_text()) - 7
        self.refused(free, [self.place()], (NOT_FOUND,), f"(?i)no.*process.*|{free}")

    def test_pid_that_is_none(self):
        for pid in ("0", "-5", "abc"):
            result = probectl.probectl("attach", "--pid", pid, "-e", self.place())
            self.assertEqual(result.code, USAGE, result.err)

    def test_traced_by_strace(self):
        with Counter() as counter:
            with Program(["/usr/bin/strace", "-o", "/dev/null", "-p", str(counter.pid)]) as strace:
                wait_until(lambda: int(status(counter.pid, "TracerPid")) == strace.pid, 10)
                text = self.refused(counter.pid, [self.place()], (PRECONDITION, PERMISSION),
                                    "strace")
                self.assertIn(str(strace.pid), text)
                strace.signal(signal.SIGINT)
                strace.finish(10, close_input=False)
            counter.assert_unharmed(self)

    def test_zombie(self):
        with subprocess.Popen(["/usr/bin/true"]) as child:
            wait_until(lambda: (status(child.pid, "State") or "").startswith("Z"), 10, "a zombie")
            self.refused(child.pid, [self.place()], (NOT_FOUND, PRECONDITION), "(?i)zombie")

    def test_kernel_thread(self):
        kthreads = [int(name) for name in os.listdir("/proc") if name.isdigit()
                    and status(name, "Kthread") == "1" or name == "2"
                    and not Path("/proc/2/cmdline").read_bytes()]
        if not kthreads:
            self.skipTest("no kernel thread is visible here")
        self.refused(kthreads[0], [self.place()], (PRECONDITION, PERMISSION), "(?i)kernel thread")

    def test_daemon_itself(self):
        with Daemon() as daemon:
            result = daemon.run("attach", "--pid", str(daemon.program.pid), "-e", self.place(),
                                "--duration", "1")
            self.assertIn(result.code, (PRECONDITION, PERMISSION, USAGE), result.err)
            self.assertRegex(result.err, "(?i)itself|self|daemon")
            self.assertEqual(daemon.run("status").code, 0)

    def test_one_that_traces_the_daemon(self):
        with Daemon() as daemon:
            with Program(["/usr/bin/strace", "-f", "-o", "/dev/null", "-p",
                          str(daemon.program.pid)]) as strace:
                wait_until(lambda: int(status(daemon.program.pid, "TracerPid")) == strace.pid, 10)
                result = daemon.run("attach", "--pid", str(strace.pid), "-e", self.place(),
                                    "--duration", "1")
                self.assertIn(result.code, (PRECONDITION, PERMISSION, USAGE), result.err)
                self.assertRegex(result.err, "(?i)trac")
                strace.signal(signal.SIGINT)
                strace.finish(10, close_input=False)

    def test_gone_half_way(self):
        """Short-lived processes: whatever happens, it is told, and nothing hangs."""
        for pause in ("0", "0.02", "0.05", "0.08", "0.12", "0.2"):
            with subprocess.Popen(["/usr/bin/sleep", pause]) as child:
                result = probectl.probectl("attach", "--pid", str(child.pid), "-e",
                                           "p:e/x libc.so.6:exit", seconds=15)
                self.assertIn(result.code, (0, NOT_FOUND, PRECONDITION), result.err)
                self.assertEqual(child.wait(5), 0)

    def test_address_nobody_listens_on(self):
        result = probectl.probectl("attach", "--pid", str(os.getpid()), "-e", self.place(),
                                   address="unix:///tmp/nobody-listens-here.sock")
        self.assertEqual(result.code, CONNECT, result.err)
        self.assertIn("nobody-listens-here", result.err)

    def test_wrong_command_lines(self):
        for words in (["frobnicate"], ["attach"], ["run"], ["attach", "--pid", "1", "--nope"],
                      ["attach", "--pid", str(os.getpid()), "--format", "xml", "-e", "p x:1"]):
            with self.subTest(words):
                result = probectl.probectl(*words)
                self.assertEqual(result.code, USAGE, result.err)
                self.assertTrue(result.err or result.out)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
class Permissions(BadInput):
    """probectl as nobody: the message names the cause."""

    def attach_as_nobody(self, pid):
        def become_nobody():
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return subprocess.run(
            [probectl.PROBECTL, "attach", "--pid", str(pid), "-e",
             f"p:e/x {target('counter')}:work", "--duration", "1"],
            preexec_fn=become_nobody, env=probectl.environment(), capture_output=True, text=True,
            timeout=30, check=False)

    def test_another_users_process(self):
        with Counter() as counter:
            result = self.attach_as_nobody(counter.pid)
            self.assertEqual(result.returncode, PERMISSION, result.stderr)
            self.assertRegex(result.stderr, "(?i)uid|user")
            self.assertRegex(result.stderr, "(?i)CAP_SYS_PTRACE|root")
            counter.assert_unharmed(self)

    def test_process_that_is_not_dumpable(self):
        child = os.fork()
        if child == 0:
            try:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
                signal.pause()
            finally:
                os._exit(0)
        try:
            wait_until(lambda: (status(child, "Uid") or "0").split()[0] == str(NOBODY) and
                       (status(child, "State") or "R")[0] == "S", 10)
            result = self.attach_as_nobody(child)
            self.assertEqual(result.returncode, PERMISSION, result.stderr)
            self.assertRegex(result.stderr, "(?i)dumpable")
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def test_process_under_seccomp_is_not_made_to_call_the_system(self):
        """A filter that kills on mmap: attaching must work without one, or be refused; never kill."""
        with Program(["/usr/bin/python3", "-c", SANDBOXED]) as program:
            program.wait_for("ready")
            self.assertEqual(status(program.pid, "Seccomp"), "2")
            result = probectl.probectl("attach", "--pid", str(program.pid), "-e",
                                       "p:e/x libc.so.6:getppid", "--count", "3", "--duration", "3")
            if result.code != 0:
                self.assertRegex(result.err, "(?i)seccomp")
            wait_until(lambda: is_running_free(program.pid), 5)
            self.assertEqual(maps.changed_text(program.pid), [])
            self.assertEqual(program.finish(10), 0, program.err)
            self.assertTrue(re.search(r"done \d+", program.out))


    def test_daemon_under_a_seccomp_filter(self):
        """What a container without SYS_PTRACE looks like on old hosts: ptrace is EPERM."""
        with Counter() as counter:
            for words, code in ((["attach", "--pid", str(counter.pid), "-e",
                                  f"p:e/x {counter.path}:work", "--duration", "1"], PERMISSION),
                                (["run", "--", "true"], PERMISSION)):
                result = subprocess.run(
                    ["/usr/bin/python3", "-c", WITHOUT_PTRACE, probectl.PROBECTL, *words],
                    env=probectl.environment(), capture_output=True, text=True, timeout=30,
                    check=False)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertRegex(result.stderr, "SECCOMP_FILTER")
                self.assertRegex(result.stderr, "SYS_PTRACE")
            counter.assert_unharmed(self)


# Runs its arguments with ptrace (101) refused.
WITHOUT_PTRACE = r"""
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 101), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
program = b"".join(struct.pack("HBBI", *line) for line in code)
buffer = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
filter = Filter(len(code), ctypes.addressof(buffer))
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(filter)) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""

SANDBOXED = r"""
import ctypes, os, select, struct, sys
libc = ctypes.CDLL(None)
allow, kill = 0x7fff0000, 0x80000000
# load nr; mmap or mprotect: kill; else allow
code = [(0x20, 0, 0, 0), (0x15, 2, 0, 9), (0x15, 1, 0, 10), (0x06, 0, 0, allow), (0x06, 0, 0, kill)]
program = b"".join(struct.pack("HBBI", *line) for line in code)
buffer = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc.prctl(38, 1, 0, 0, 0)
filter = Filter(len(code), ctypes.addressof(buffer))
print("ready", flush=True) if libc.prctl(22, 2, ctypes.byref(filter)) == 0 else sys.exit(9)
count = 0
while not select.select([0], [], [], 0.002)[0]:
    os.getppid()
    count += 1
os.write(1, b"done %d\n" % count)
os._exit(0)
"""


if __name__ == "__main__":
    unittest.main()
