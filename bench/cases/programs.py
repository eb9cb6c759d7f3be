"""Starting the measured programs and reading what they say. Every wait has a deadline."""

import os
import re
import select
import subprocess

DEADLINE = 60


def read_line(process, seconds=DEADLINE):
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    if not ready:
        raise TimeoutError(f"{process.args[0]} said nothing for {seconds} s")
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args[0]} ended")
    return line.strip()


# Many short rounds, and the one that only a tenth of them beat: what the thing costs while the
# machine's other work leaves it alone, alike for all that is compared.
ROUNDS = 40


def per_call(program, rounds=ROUNDS):
    """Nanoseconds. The first rounds are for settling down."""
    for _ in range(rounds // 4):
        program.run_once()
    return sorted(program.run_once()[1] for _ in range(rounds))[rounds // 10]


class Program:
    """A bench program, ended with its scope."""

    def __init__(self, path, *arguments):
        # Unbuffered, so that select() sees every line that readline() has not taken.
        self.process = subprocess.Popen([path, *map(str, arguments)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, bufsize=0)
        self.path = path

    def __enter__(self):
        if read_line(self.process) != b"ready":
            raise RuntimeError("the program did not start")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def pid(self):
        return self.process.pid

    def address_of(self, file_offset):
        for start, offset, size in executable_mappings(self.pid, self.path):
            if offset <= file_offset < offset + size:
                return start + file_offset - offset
        raise LookupError(hex(file_offset))

    def byte_at(self, file_offset):
        """One byte of the program's text as it is now in memory."""
        with open(f"/proc/{self.pid}/mem", "rb") as memory:
            memory.seek(self.address_of(file_offset))
            return memory.read(1)

    def run_once(self, seconds=DEADLINE):
        """One round of calls: (calls, nanoseconds per call)."""
        self.process.stdin.write(b"go\n")
        calls, elapsed = map(int, read_line(self.process, seconds).split())
        return calls, elapsed / calls


def symbol(path, name):
    """File offset of a function, by readelf."""
    text = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout
    address = next(int(line.split()[1], 16) for line in text.splitlines()
                   if line.split()[-1:] == [name])
    segments = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True,
                              check=True).stdout
    for found in re.finditer(r"LOAD\s+(0x\w+)\s+(0x\w+)\s+0x\w+\s+(0x\w+)", segments):
        offset, start, size = (int(text, 16) for text in found.groups())
        if start <= address < start + size:
            return address - start + offset
    raise LookupError(name)


def executable_mappings(pid, path):
    """(start, file offset, size) of each."""
    real = os.path.realpath(path)
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            fields = line.split()
            if fields[-1] != real or "x" not in fields[1]:
                continue
            start, end = (int(text, 16) for text in fields[0].split("-"))
            yield start, int(fields[2], 16), end - start

