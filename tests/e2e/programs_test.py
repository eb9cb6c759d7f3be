"""Installed programs that know nothing of us; what is seen is compared with what they print."""

import os
import re
import subprocess
import tempfile
import unittest

from support import elf, maps, probectl, trace
from support.daemon import Daemon
from support.paths import target
from support.process import Program, run

LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def function(path, symbol, distance=0):
    path = os.path.realpath(path)
    return f"{path}:{elf.offset(path, symbol) + distance:#x}"


class Programs(unittest.TestCase):
    def run_probed(self, definitions, command, *options):
        """Output and exit status as without probes; the records."""
        native = run(command)
        with probectl.run(definitions, command, *options) as session:
            code = session.finish(60)
            self.assertEqual((code, session.program.out), (native.code, native.out),
                             session.program.err)
            return session.records

    def test_sqlite(self):
        records = self.run_probed(
            [f"p:sq/prepare {function(LIBRARIES + '/libsqlite3.so.0', 'sqlite3_prepare_v2')} "
             "sql=+0(%si):string",
             f"r:sq/rc {LIBRARIES}/libsqlite3.so.0:sqlite3_prepare_v2 rc=$retval:s32"],
            ["/usr/bin/sqlite3", ":memory:", "select 40+2;"])
        self.assertEqual([r.arguments for r in records if r.event == "prepare"],
                         ['sql="select 40+2;"'])
        self.assertEqual([r.arguments for r in records if r.event == "rc"], ["rc=0"])

    def test_library_by_its_bare_name(self):
        """Found although nothing maps it yet; it is a link to libsqlite3.so.0.8.6."""
        records = self.run_probed(["p:sq/p libsqlite3.so.0:sqlite3_prepare_v2 sql=+0(%si):string"],
                                  ["/usr/bin/sqlite3", ":memory:", "select 40+2;"])
        self.assertEqual([r.arguments for r in records], ['sql="select 40+2;"'])

    def test_python(self):
        records = self.run_probed(
            [f"p:py/long {function('/usr/bin/python3.11', 'PyLong_FromString')} s=+0(%di):string",
             "r:py/run /usr/bin/python3.11:PyRun_SimpleStringFlags rc=$retval:s32"],
            ["/usr/bin/python3.11", "-S", "-E", "-c", "print(int('123456789') + 1)"])
        self.assertEqual([r.arguments for r in records], ['s="123456789"', "rc=0"])

    def test_getaddrinfo(self):
        records = self.run_probed(
            [f"p:net/gai {function(LIBRARIES + '/libc.so.6', 'getaddrinfo')} host=+0(%di):string",
             "r:net/ret libc.so.6:getaddrinfo rc=$retval:s32"],
            ["/usr/bin/getent", "ahosts", "localhost"])
        self.assertEqual([r.arguments for r in records], ['host="localhost"', "rc=0"])

    def test_open(self):
        records = self.run_probed(["p:io/open libc.so.6:open path=+0(%di):string",
                                   "p:io/openat libc.so.6:openat path=+0(%si):string"],
                                  ["/usr/bin/cat", "/etc/hostname", "/etc/debian_version"])
        paths = [r.arguments for r in records]
        self.assertEqual(paths[-2:], ['path="/etc/hostname"', 'path="/etc/debian_version"'])

    def test_malloc_and_free_balance(self):
        command = ["/usr/bin/python3.11", "-S", "-E", "-c",
                   "print(sum(len(str(i) * 200) for i in range(300)))"]
        records = self.run_probed(["p:m/malloc libc.so.6:malloc n=%di:u64",
                                   "r:m/ret libc.so.6:malloc p=$retval:x64"], command)
        counts = trace.counts(records)
        self.assertGreater(counts["malloc"], 500)
        self.assertEqual(counts["malloc"], counts["ret"])

    def test_every_function_start_of_libc_in_a_small_program(self):
        """Hundreds of probes in the busiest library; ls prints what it always prints."""
        path = os.path.realpath(LIBRARIES + "/libc.so.6")
        skip = {"_exit", "abort"}
        symbols = {s.offset: s.name for s in elf.load(path).symbols.values()
                   if s.size > 0 and s.name.isidentifier() and s.name not in skip
                   and s.offset > 0x20000 and any(
                       segment.flags & elf.PF_X and
                       segment.offset <= s.offset < segment.offset + segment.file_size
                       for segment in elf.load(path).segments)}
        definitions = [f"p:all/x{at:x} {path}:{at:#x}" for at in symbols]
        self.assertGreater(len(definitions), 1500)
        records = self.run_probed(definitions, ["/usr/bin/ls", "-l", "/usr/share"])
        self.assertGreater(len(trace.counts(records)), 40)

    def test_static_program_without_symbols(self):
        path = "/usr/bin/busybox"
        with open(path, "rb") as file:
            entry = int.from_bytes(file.read(32)[24:32], "little")
        offset = elf.load(path).offset_of(entry)
        records = self.run_probed([f"p:bb/entry {path}:{offset:#x} argc=+0(%sp):s32 "
                                   "name=+0(+8(%sp)):string"], [path, "echo", "static"])
        self.assertEqual([r.text for r in records],
                         [f'({entry:#x}) argc=3 name="/usr/bin/busybox"'])

    def test_go(self):
        path = target("hello-go")
        records = self.run_probed([f"p:go/step {function(path, 'main.step')} n=%ax:s64"],
                                  [path, "60"])
        self.assertEqual(len(records), 8 * 60 * 41)
        self.assertEqual({int(r.arguments.split("=")[1]) for r in records}, set(range(41)))

    def test_go_arguments(self):
        """$argN counts words in the order of Go's registers: a string has two, a slice three."""
        path = target("hello-go")
        records = self.run_probed(
            [f"p:go/label {function(path, 'main.label')} name=+0($arg1):bytes($arg2) "
             "length=$arg4:u64 room=$arg5:u64 last=$arg6:s64"], [path, "1"])
        self.assertEqual([r.arguments for r in records], ['name="gopher" length=3 room=5 last=-7'])

    def test_go_returns(self):
        """Stacks move under grow, which calls itself, and are looked through by the collector."""
        path = target("hello-go")
        step, grow = function(path, "main.step"), function(path, "main.grow")
        records = self.run_probed([f"r:go/stepped {step} n=$retval:s64", f"r:go/grown {grow}",
                                   f"p:go/grow {grow} depth=%ax:s64"], [path, "60"])
        calls = 8 * 60 * 41
        counts = trace.counts(records)
        self.assertEqual((counts["stepped"], counts["grown"]), (calls, calls))
        self.assertGreater(counts["grow"], calls)  # begun again on a stack that has grown
        stepped = [r for r in records if r.event == "stepped"]
        self.assertEqual({int(r.arguments.split("=")[1]) for r in stepped},
                         {3 * n + 1 for n in range(41)})
        symbols = elf.load(path).symbols
        into, out_of = symbols["main.grow"], symbols["main.step"]
        for record in stepped:
            caller, callee = (int(word, 16) for word in
                              re.match(r"\((\w+) <- (\w+)\)", record.text).groups())
            self.assertEqual(callee, out_of.address)
            self.assertTrue(into.address < caller < into.address + into.size)

    def test_go_returns_come_and_go(self):
        path = target("hello-go")
        with Program([path, "10", "wait"]) as program:
            program.wait_for("ready")
            for place, why in ((f"{function(path, 'main.step')} $arg1", "is gone at its ret"),
                               (function(path, "main.step", 1), "is not where main.step begins"),
                               (function(path, "runtime.goexit.abi0"), "has no ret instruction")):
                refused = probectl.probectl("attach", "--pid", str(program.pid), "--force", "-e",
                                            f"r:go/ret {place}")
                self.assertEqual(refused.code, 2)
                self.assertIn(why, refused.err)
            with probectl.Attached(program.pid, [f"r:go/ret {function(path, 'main.grow')}"]) as on:
                self.assertEqual(on.detach(), 0, on.program.err)
            self.assertEqual(maps.changed_text(program.pid), [])
            program.say("\n")
            self.assertEqual(program.finish(30), 0)
            self.assertIn(f"calls {8 * 10 * 41} ", program.out)

    def test_no_thread_pointer(self):
        """Detours find a thread's own memory by its fs base: here, none has any."""
        path = target("bare", "gcc-O2-nopie-nocf")
        with Program([path]) as program, Daemon() as daemon:
            program.say("x")
            program.wait_for("right\n")
            lines = [f"p:e/p {path}:work n=%di:s64", f"r:e/r {path}:work v=$retval:s64"]
            with probectl.Attached(program.pid, lines, address=daemon.address) as session:
                self.assertEqual({site["mechanism"] for site in daemon.settled_sites()},
                                 {"optimized"})
                for i in range(3):
                    program.say("x")
                    program.wait_for("right\n" * (2 + i))
                session.wait_for_records(600)
                self.assertEqual(session.detach(), 0, session.program.err)
                self.assertIn(" 0 lost", session.program.err)
                values = [r.arguments for r in session.records if r.event == "r"]
                self.assertEqual(values, [f"v={3 * i + 1}" for i in range(100)] * 3)
                self.assertEqual({r.pid for r in session.records}, {program.pid})
            self.assertEqual(program.finish(10), 0)
            self.assertEqual(program.out, "right\n" * 4)


class Tls(unittest.TestCase):
    """Plain text of a TLS connection, by length-delimited bytes."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="probed-tls-")
        self.addCleanup(folder.cleanup)
        key, certificate = f"{folder.name}/key", f"{folder.name}/cert"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True,
                       timeout=30)
        self.server = Program(["/usr/bin/openssl", "s_server", "-accept", "127.0.0.1:0", "-www",
                               "-key", key, "-cert", certificate])
        self.addCleanup(self.server.__exit__)
        self.server.wait_for("ACCEPT 127.0.0.1:")
        self.port = int(self.server.out.split("ACCEPT 127.0.0.1:")[1].split()[0])

    def test_request_and_response_of_curl(self):
        command = ["/usr/bin/curl", "-sk", "--http1.1", f"https://127.0.0.1:{self.port}/probe-me"]
        definitions = ["p:tls/write libssl.so.3:SSL_write data=+0(%si):bytes(%dx:u32)",
                       "r:tls/read libssl.so.3:SSL_read data=+0($arg2):bytes($retval:s32)"]
        with probectl.run(definitions, command) as session:
            self.assertEqual(session.finish(30), 0, session.program.err)
            self.assertIn("Ciphers supported", session.program.out)
            writes = [r.arguments for r in session.records if r.event == "write"]
            reads = [r.arguments for r in session.records if r.event == "read"]
        self.assertEqual(len(writes), 1)
        self.assertTrue(writes[0].startswith('data="GET /probe-me HTTP/1.1\\x0d\\x0aHost: '),
                        writes)
        self.assertTrue(any("HTTP/1.0 200 ok" in read for read in reads), reads[:3])


if __name__ == "__main__":
    unittest.main()
