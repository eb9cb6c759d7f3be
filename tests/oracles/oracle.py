"""Programs that judge themselves, run as they are and with probes on all their functions."""

import os
import re
import subprocess
import unittest
from functools import lru_cache

from support import elf, probectl
from support.daemon import Daemon
from support.process import run
from support.wait import wait_until

LIBC = os.path.realpath("/usr/lib/x86_64-linux-gnu/libc.so.6")
SOAK = os.environ.get("PROBED_SOAK") == "1"

_UD2 = b"\x0f\x0b"  # where a function begins that the compiler found unreachable: no probe there


# Return more than once from one call, or are not called; refused by their names.
_NO_RETURN = {"__start_context", "setjmp", "_setjmp", "__sigsetjmp", "getcontext",
              "__getcontext", "vfork", "__vfork", "__libc_vfork"}


def functions(path):
    """Offsets of the functions of a file, and of parts of such, by symbols and the table of frames."""
    file = elf.load(os.path.realpath(path))
    starts = {symbol.offset for symbol in file.functions()} | set(file.function_starts())
    return [at for at in sorted(starts) if file.bytes[at:at + 2] != _UD2]


@lru_cache(maxsize=8)
def not_called(path):
    """Offsets where a frame begins that is entered with something else than its return address on
    top of the stack, by readelf: program entries, stubs, cold parts of functions."""
    text = subprocess.run(["readelf", "-W", "-wF", path], capture_output=True, text=True,
                          timeout=120).stdout
    file, found = elf.load(path), set()
    for entry in text.split("\n\n"):
        start = re.search(r" FDE .* pc=([0-9a-f]+)\.\.", entry)
        row = re.search(r"^\s*LOC .* ra\s*\n(.*)$", entry, re.M)
        if start and row:
            address, frame, *_, place = row[1].split()
            if int(address, 16) == int(start[1], 16) and (frame, place) != ("rsp+8", "c-8"):
                found.add(file.offset_of(int(address, 16)))
    entry = file.offset_of(int.from_bytes(file.bytes[24:32], "little"))
    return found | {entry}


def definitions(path, kinds="pr", step=1):
    """Entry and return probes on every step-th function, where such a probe can be."""
    real = os.path.realpath(path)
    names = elf.load(real).symbols
    no_return = not_called(real) | {names[name].offset for name in _NO_RETURN if name in names}
    return [f"{kind}:o/{kind}{at:x} {real}:{at:#x}" for kind in kinds
            for at in functions(real)[::step] if kind == "p" or at not in no_return]


def some(lines, step):
    """Every step-th; all in a soak."""
    return lines if SOAK else lines[::step]


def processes_of(session_id):
    """Processes of a session that are still there, zombies included, with their states."""
    found = {}
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                fields = file.read().rsplit(") ", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[3]) == session_id:
            found[int(name)] = fields[0]
    return found


class Oracle(unittest.TestCase):
    def probed(self, command, lines, optimization, seconds=120, options=(), **program):
        """Runs the command under probectl, and sees to it that nothing is left of it. Returns the
        program that probectl is, with `code` and `hits`."""
        most_rounds = 8  # not all refusals are told at once
        for _ in range(most_rounds):
            result = self._probed(command, lines, optimization, seconds, options, **program)
            refused = impossible(result.err)
            if not refused:
                break
            lines = [line for number, line in enumerate(lines, 1) if number not in refused]
        return result

    def _probed(self, command, lines, optimization, seconds, options, **program):
        with Daemon() as daemon:
            daemon.optimize(optimization)
            with probectl.Stream("run", lines, ["--rate", "20", *options], command,
                                 address=daemon.address, new_session=True, **program) as session:
                session.program.code = session.finish(seconds)
                wait_until(lambda: processes_of(session.program.pid) == {}, 20,
                           "the end of all its processes")
                session.program.hits = hits_by_name(session.program.err)
            left = daemon.run("targets", "--json").out
            self.assertEqual(left, "")
            return session.program

    def same(self, command, lines, verdict=lambda program: program.out, least=1, step=1, **more):
        """Without probes, with breakpoints, and with what becomes of them: the same exit code and
        verdict (of a finished program). Of the breakpoints, which are slow, every step-th only."""
        native = run(command, more.get("seconds", 120), new_session=True,
                     **{name: more[name] for name in ("env", "cwd") if name in more})
        code = native.code if native.code >= 0 else 128 - native.code  # a signal's, as probectl says it
        expected = (code, verdict(native))
        for optimization in ("off", "on"):
            with self.subTest(optimization=optimization):
                chosen = some(lines, step) if optimization == "off" else lines
                program = self.probed(command, chosen, optimization, **more)
                self.assertEqual((program.code, verdict(program)), expected,
                                 re.sub("^probectl:   .*\n", "", program.err, flags=re.M)[-3000:])
                self.assertGreater(sum(program.hits.values()), least)
        return native


def impossible(errors):
    """Numbers of the lines that probectl refuses: no program could execute what is there, it is where
    the unwinder looks at its own return address, or has none (a local symbol of a stripped file), or
    tables disagree."""
    reasons = "INSTRUCTION_REFUSED|LOOKS_AT_RETURN_ADDRESS|NOT_FUNCTION_ENTRY|FUNCTION_END_DISPUTED"
    return {int(number) for number in re.findall(
        rf"^probectl: error: definition (\d+): .*\n(?:  .*\n)*?  why: (?:{reasons})", errors, re.M)}


def hits_by_name(summary):
    """What probectl says at its end: how often each probe was hit."""
    return {name: int(hits) for name, hits in
            re.findall(r"^probectl:   [pr]:(\S+)  hits (\d+)", summary, re.M)}
