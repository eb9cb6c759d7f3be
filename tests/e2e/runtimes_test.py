"""Interpreters and virtual machines: attached to while they work, and let go of, twice; what they
answer afterwards is right, and they end as they would."""

import hashlib
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from support import maps, probectl
from support.daemon import Daemon
from support.process import Program, is_running_free, threads, tracer_of
from support.wait import wait_until

LIBC = "libc.so.6"
LINES = [f"{kind}:e/{kind}_{name} {LIBC}:{name}" for kind in "pr"
         for name in ("malloc", "free", "read", "write", "pthread_mutex_lock", "pthread_cond_signal")]

PYTHON = """
import hashlib, subprocess, sys, threading
def work(n, out):
    try:
        raise ValueError(n)
    except ValueError as error:
        data = b"".join(b"%d," % i for i in range(error.args[0]))
    out.append(hashlib.sha256(data).hexdigest())
for line in iter(sys.stdin.readline, ""):
    out, n = [], int(line)
    workers = [threading.Thread(target=work, args=(n, out)) for _ in range(4)]
    [w.start() for w in workers]; [w.join() for w in workers]
    child = subprocess.run(["true"]).returncode
    print(n, *sorted(set(out)), child, flush=True)
"""
NODE = """
const {createHash} = require("crypto"), {Worker} = require("worker_threads");
const readline = require("readline").createInterface({input: process.stdin});
const hash = (n) => { let s = ""; for (let i = 0; i < n; ++i) s += i + ",";
                      return createHash("sha256").update(s).digest("hex"); };
const threaded = (n) => new Promise((done) => {
  const code = `const {parentPort} = require("worker_threads"); let sum = 0;
                for (let i = 0; i < ${n}; ++i) sum += [i].map((x) => x).length;
                parentPort.postMessage(sum);`;
  new Worker(code, {eval: true}).on("message", done); });
(async () => { for await (const line of readline)
  console.log(line, hash(+line), (await threaded(+line)) == +line ? 0 : 1); })();
"""


def answer(n):
    digest = hashlib.sha256(b"".join(b"%d," % i for i in range(n))).hexdigest()
    return f"{n} {digest} 0\n"


class Runtimes(unittest.TestCase):
    def come_and_go(self, program, daemon, work=lambda: None):
        """Twice; while attached, `work` is done."""
        for _ in range(2):
            with probectl.Attached(program.pid, LINES, "--rate", "20",
                                   address=daemon.address) as session:
                work()
                session.wait_for_records(1)
                self.assertEqual(session.detach(60), 0, session.program.err)
            wait_until(lambda: is_running_free(program.pid), 20, "it runs free")
            self.assertTrue(all(tracer_of(tid) == 0 for tid in threads(program.pid)))
            self.assertEqual(maps.changed_text(program.pid), [])

    def answers_stay_right(self, command):
        for optimization in ("off", "on"):
            with self.subTest(optimization=optimization), Daemon() as daemon, \
                    Program(command) as program:
                daemon.optimize(optimization)
                asked = []

                def ask(n):
                    asked.append(n)
                    program.say(f"{n}\n")
                    program.wait_for("".join(map(answer, asked)), 60)
                ask(1000)
                self.come_and_go(program, daemon, lambda: ask(3000 + len(asked)))
                ask(2000)
                self.assertEqual(program.finish(30), 0, program.err)
                self.assertEqual(program.out, "".join(map(answer, asked)))

    def test_python(self):
        self.answers_stay_right([os.path.realpath(sys.executable), "-c", PYTHON])

    @unittest.skipUnless(shutil.which("node"), "there is no node here")
    def test_node(self):
        self.answers_stay_right(["node", "-e", NODE])

    @unittest.skipUnless(shutil.which("keytool"), "there is no Java here")
    def test_java(self):
        """A program of the runtime's own, which asks for a password, then makes a key."""
        for optimization in ("off", "on"):
            with self.subTest(optimization=optimization), Daemon() as daemon, \
                    tempfile.TemporaryDirectory() as folder:
                daemon.optimize(optimization)
                store = Path(folder) / "store"
                with Program(["keytool", "-genkeypair", "-alias", "a", "-keyalg", "EC", "-dname",
                              "CN=probed", "-keystore", store]) as program:
                    program.wait_for("password", 60, stream="err")
                    self.come_and_go(program, daemon)
                    with probectl.Attached(program.pid, LINES, "--rate", "20",
                                           address=daemon.address) as session:
                        program.say("secret\nsecret\n")
                        self.assertEqual(program.finish(100, close_input=False), 0, program.err)
                        self.assertEqual(session.finish(30), 0, session.program.err)
                        self.assertGreater(len(session.records), 0)
                with Program(["keytool", "-list", "-storepass", "secret", "-keystore",
                              store]) as program:
                    self.assertEqual(program.finish(60), 0, program.out)
                    self.assertIn("PrivateKeyEntry", program.out)


if __name__ == "__main__":
    unittest.main()
