"""Real programs while every function of theirs, or of a library, carries an entry probe as a jump:
output and exit status are as without, and counts are what the programs themselves count."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import mass
from support import elf
from support.daemon import Daemon
from support.paths import BUILD
from support.process import Program, run

PYTHON = os.path.realpath("/usr/bin/python3.11")
REDIS = os.path.realpath("/usr/bin/redis-server")
CRYPTO = os.path.realpath("/usr/lib/x86_64-linux-gnu/libcrypto.so.3")
GATE = BUILD / "tests" / "libgate.so"

# Runs the test suite of Python, then counts what can be counted, each when it is told to.
PYTHON_PROGRAM = """
import runpy, sys
sys.stdin.readline()
sys.argv = ["test", *sys.argv[1:]]
try:
    runpy.run_module("test", run_name="__main__")
except SystemExit as end:
    print("exit status", end.code or 0, flush=True)
sys.stdin.readline()
for _ in range(1000):
    int("123456789")
print("counted", flush=True)
sys.stdin.readline()
"""

DIGEST_PROGRAM = """
import _hashlib, sys
digest = _hashlib.openssl_sha256()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(1000):
    digest.update(b"x" * 1000)
print(digest.hexdigest(), flush=True)
sys.stdin.readline()
"""


class Mass(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon().__enter__()
        self.addCleanup(self.daemon.__exit__)
        self.daemon.run("optimization", "on")
        folder = tempfile.TemporaryDirectory(prefix="probed-mass-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, argv, **options):
        program = Program(argv, **options)
        self.addCleanup(program.__exit__)
        return program

    def start_at_gate(self, argv, **options):
        program = self.start(argv, env=dict(os.environ, LD_PRELOAD=str(GATE)), **options)
        program.wait_for("gate\n", stream="err")
        return program

    def probe(self, program, lines):
        """Every line is an entry probe; most of them are jumps when this returns."""
        target = mass.Target(self.daemon, program)
        target.define(lines)
        target.optimize()
        return target


class Python(Mass):
    # The rest of test_asyncio takes much longer than all others.
    TESTS = ["test_json", "test_re", "test_math", "test_asyncio"]
    PARTS = ["test.test_json.*", "test.test_re.*", "test.test_math.*",
             "test.test_asyncio.test_queues.*", "test.test_asyncio.test_tasks.*"]

    def test_suite_of_python(self):
        words = self.TESTS + [word for part in self.PARTS for word in ("-m", part)]
        program = self.start([PYTHON, "-c", PYTHON_PROGRAM, *words], cwd=self.folder)
        target = self.probe(program, mass.definitions(PYTHON, "n=%di:u64"))
        program.say("\n")
        program.wait_for("exit status", 200)
        self.assertIn("exit status 0", program.out, program.err)
        self.assertIn("Tests result: SUCCESS", program.out)
        before = target.hits()
        self.assertGreater(sum(count > 0 for count in before.values()), 1000)
        program.say("\n")
        program.wait_for("counted")
        parse = elf.offset(PYTHON, "PyLong_FromString")
        self.assertEqual(target.hits()[parse] - before[parse], 1000)
        program.say("\n")
        self.assertEqual(program.finish(60), 0)


class Crypto(Mass):
    def test_counts_are_the_programs_own(self):
        program = self.start([PYTHON, "-c", DIGEST_PROGRAM])
        program.wait_for("ready")
        target = self.probe(program, mass.definitions(CRYPTO, "data=%si:x64 size=%dx:u64"))
        program.say("\n")
        program.wait_for("1b977e9f84f1b26b6ed7f68b0498faee2385ea4125bd29adce4a7d9106ba3134")
        self.assertEqual(target.hits()[elf.offset(CRYPTO, "EVP_DigestUpdate")], 1000)
        program.say("\n")
        self.assertEqual(program.finish(60), 0)

    def test_speed(self):
        for algorithm in ("sha256", "-evp aes-128-gcm"):
            program = self.start_at_gate(["/usr/bin/openssl", "speed", "-seconds", "1", "-bytes",
                                          "1024", *algorithm.split()])
            self.probe(program, mass.definitions(CRYPTO))
            program.say("\n")
            self.assertEqual(program.finish(60), 0, program.err)
            self.assertRegex(program.out, r"(?i)(sha256|aes-128-gcm) +\d+\.\d+k")

    def test_transfer_over_tls(self):
        content = os.urandom(4 << 20)
        (self.folder / "file").write_bytes(content)
        key, certificate = self.folder / "key", self.folder / "certificate"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True,
                       timeout=60)
        server = self.start(["/usr/bin/openssl", "s_server", "-accept", "127.0.0.1:0", "-WWW",
                             "-key", str(key), "-cert", str(certificate)], cwd=self.folder)
        server.wait_for("ACCEPT 127.0.0.1:")
        port = int(server.out.split("ACCEPT 127.0.0.1:")[1].split()[0])
        target = self.probe(server, mass.definitions(CRYPTO, "a=%di:x64 b=%si:x64"))
        got = subprocess.run(["/usr/bin/curl", "-sk", "--http1.1",
                              f"https://127.0.0.1:{port}/file"], capture_output=True, timeout=60)
        self.assertEqual((got.returncode, got.stdout == content), (0, True), got.stderr)
        hits = target.hits()
        self.assertGreater(sum(count > 0 for count in hits.values()), 300)
        self.assertGreater(hits[elf.offset(CRYPTO, "EVP_CipherUpdate")], len(content) >> 14)


class Redis(Mass):
    def client(self, *words):
        return subprocess.run(["/usr/bin/redis-cli", "-s", str(self.folder / "socket"), *words],
                              capture_output=True, text=True, timeout=60, check=True).stdout

    def commands_processed(self):
        for line in self.client("INFO", "stats").splitlines():
            if line.startswith("total_commands_processed:"):
                return int(line.split(":")[1])
        raise AssertionError("no total_commands_processed")

    def test_benchmark(self):
        server = self.start(["/usr/bin/redis-server", "--port", "0", "--unixsocket",
                             str(self.folder / "socket"), "--save", "", "--dir", str(self.folder)])
        server.wait_for("accept connections", 20)
        target = self.probe(server, mass.definitions(REDIS, "a=%di:x64"))
        place = elf.offset(REDIS, "processCommand")
        before, calls_before = self.commands_processed(), target.hits()[place]
        load = run(["/usr/bin/redis-benchmark", "-s", str(self.folder / "socket"), "-n", "2000",
                    "-c", "20", "-q"], 120)
        self.assertEqual(load.code, 0, load.err)
        self.assertNotIn("rror", load.out)
        calls = target.hits()[place] - calls_before
        # The INFO before had not counted itself.
        self.assertEqual(calls, self.commands_processed() - before - 1)
        self.assertGreater(calls, 20000)
        self.client("SHUTDOWN", "NOSAVE")
        self.assertEqual(server.finish(60), 0)


class Compiler(Mass):
    # All of the compiler's 45,000 functions with PROBED_MASS_ALL, which takes a minute more.
    STEP = 1 if "PROBED_MASS_ALL" in os.environ else 5

    def setUp(self):
        super().setUp()
        self.compiler = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True,
                                       text=True, check=True).stdout.strip()
        self.source = str(self.folder / "source.i")
        subprocess.run(["gcc", "-E", Path(__file__).with_name("gate.c"), "-o", self.source],
                       check=True)

    def command(self, output):
        return [self.compiler, "-fpreprocessed", self.source, "-quiet", "-O2", "-o", output]

    def assembled(self, assembly):
        subprocess.run(["gcc", "-c", assembly, "-o", f"{assembly}.o"], check=True)
        return Path(f"{assembly}.o").read_bytes()

    def test_object_file_is_the_same(self):
        native, probed = (str(self.folder / f"{name}.s") for name in ("native", "probed"))
        self.assertEqual(run(self.command(native)).code, 0)
        program = self.start_at_gate(self.command(probed))
        self.probe(program, mass.definitions(self.compiler)[::self.STEP])
        program.say("\n")
        self.assertEqual((program.finish(120), program.err), (0, "gate\n"))
        self.assertEqual(self.assembled(probed), self.assembled(native))


if __name__ == "__main__":
    unittest.main()
