"""sqlite's and bash's shells with return probes on the ret instructions of all functions of theirs."""

import bisect
import os
import re
import subprocess
import unittest

from oracle import Oracle, definitions, functions, some
from shells_test import SQLITE, SQLITE_LIBRARY
from support import elf
from support.process import run

SCRIPT = r"""
fib() { local n=$1; if ((n < 2)); then echo "$n"; else echo $(($(fib $((n - 1))) + $(fib $((n - 2))))); fi; }
fib 5
declare -A seen; for word in one two three two one; do ((seen[$word]++)); done
for word in one two three; do echo "$word ${seen[$word]}"; done
text="a.b.c"; echo "${text//./-} ${text%%.*} ${#text}"
case $text in *x*) echo x ;; a*) echo a ;; esac
trap 'echo usr' USR1; kill -USR1 $$
sort <<< $'3\n1\n2' | while read -r line; do printf '[%s]' "$line"; done; echo
[[ abc =~ ^a(.)c$ ]] && echo "${BASH_REMATCH[1]}"
(exit 5); echo $?
set -- {1..5}; shift 2; echo "$# $*"; eval 'echo $((7 * 6))'
exit 9
"""
BASH = ["/usr/bin/bash", "--norc", "-c", SCRIPT]


def returns(path):
    """File offsets of the ret instructions that objdump shows."""
    text = subprocess.run(["objdump", "-d", "-w", "--no-show-raw-insn", path], capture_output=True,
                          text=True, check=True, timeout=120).stdout
    file = elf.load(path)
    return sorted(file.offset_of(int(address, 16)) for address in
                  re.findall(r"^\s*([0-9a-f]+):\t(?:repz |bnd )?ret", text, re.M))


def returning(path):
    """Return probes on all functions that have a ret by objdump."""
    real = os.path.realpath(path)
    lines, rets = definitions(real, "r"), returns(real)
    starts = functions(real)
    ends = dict(zip(starts, starts[1:] + [len(elf.load(real).bytes)]))

    def has_ret(line):
        start = int(line.rsplit(":", 1)[1], 16)
        return bisect.bisect_left(rets, start) < bisect.bisect_left(rets, ends[start])
    return [line for line in lines if has_ret(line)]


class AtRet(Oracle):
    def same_at_ret(self, command, paths, least):
        lines = [line for path in paths for line in returning(path)]
        self.assertGreater(len(lines), least)
        native = run(command, 120, new_session=True)
        program = self.probed(command, some(lines, 2), "on", options=("--at-ret",))
        self.assertEqual((program.code, program.out), (native.code, native.out),
                         program.err[-3000:])
        self.assertGreater(sum(program.hits.values()), 1000)
        return native

    def test_sqlite(self):
        native = self.same_at_ret(SQLITE, [SQLITE[0], SQLITE_LIBRARY], 2000)
        self.assertIn("\nok\n", native.out)

    def test_bash(self):
        native = self.same_at_ret(BASH, ["/usr/bin/bash"], 1500)
        self.assertEqual(native.code, 9, native.err)


if __name__ == "__main__":
    unittest.main()
