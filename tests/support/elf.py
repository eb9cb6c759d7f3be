"""A small reader of 64-bit ELF files, independent of the project's own."""

import struct
from dataclasses import dataclass
from functools import lru_cache

PT_LOAD, PT_GNU_EH_FRAME, PF_X = 1, 0x6474E550, 1
_SHT_SYMTAB, _SHT_DYNSYM = 2, 11
_STT_FUNC, _STT_GNU_IFUNC = 2, 10


@dataclass(frozen=True)
class Segment:
    offset: int
    address: int
    file_size: int
    flags: int


@dataclass(frozen=True)
class Symbol:
    name: str
    address: int
    size: int
    offset: int
    kind: int


class Elf:
    def __init__(self, path):
        self.path = str(path)
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.segments = list(self._program_headers(PT_LOAD))
        self.symbols = {symbol.name: symbol for symbol in self._symbols()}

    def _program_headers(self, wanted):
        start, = struct.unpack_from("<Q", self.bytes, 32)
        size, count = struct.unpack_from("<HH", self.bytes, 54)
        for i in range(count):
            kind, flags, offset, address, _, file_size = struct.unpack_from(
                "<IIQQQQ", self.bytes, start + i * size)
            if kind == wanted:
                yield Segment(offset, address, file_size, flags)

    def _sections(self):
        start, = struct.unpack_from("<Q", self.bytes, 40)
        size, count, _ = struct.unpack_from("<HHH", self.bytes, 58)
        for i in range(count if start else 0):
            yield struct.unpack_from("<IIQQQQIIQQ", self.bytes, start + i * size)

    def _symbols(self):
        sections = list(self._sections())
        for _, kind, _, _, offset, size, link, _, _, entry in sections:
            if kind not in (_SHT_SYMTAB, _SHT_DYNSYM):
                continue
            names = sections[link][4]
            for at in range(offset, offset + size, entry):
                name, info, _, section, value, length = struct.unpack_from("<IBBHQQ", self.bytes,
                                                                           at)
                if section == 0 or value == 0:
                    continue
                end = self.bytes.index(b"\0", names + name)
                text = self.bytes[names + name:end].decode("latin-1")
                file_offset = self.offset_of(value)
                if file_offset is not None:
                    yield Symbol(text, value, length, file_offset, info & 15)

    def offset_of(self, address):
        for segment in self.segments:
            if segment.address <= address < segment.address + segment.file_size:
                return address - segment.address + segment.offset
        return None

    def address_of(self, offset):
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.file_size and \
                    segment.flags & PF_X:
                return offset - segment.offset + segment.address
        raise ValueError(f"{offset:#x} is not in executable code of {self.path}")

    def functions(self):
        """Symbols of functions that have a size."""
        return [symbol for symbol in self.symbols.values()
                if symbol.kind in (_STT_FUNC, _STT_GNU_IFUNC) and symbol.size > 0]

    def function_starts(self):
        """File offsets, ascending, of what the table of frames (.eh_frame_hdr) has a frame for; none
        where a linker has not made one."""
        header = next(self._program_headers(PT_GNU_EH_FRAME), None)
        if header is None:
            return []
        version, _, count_format, table_format, _, count = struct.unpack_from(
            "<BBBBiI", self.bytes, header.offset)
        assert (version, count_format, table_format) == (1, 0x03, 0x3B), self.path
        rows = struct.iter_unpack("<ii", self.bytes[header.offset + 12:][:8 * count])
        return [self.offset_of(header.address + start) for start, _ in rows]

    def text(self):
        """(offset, bytes) of what is mapped executable."""
        return [(s.offset, self.bytes[s.offset:s.offset + s.file_size])
                for s in self.segments if s.flags & PF_X]


@lru_cache(maxsize=64)
def load(path):
    return Elf(path)


def offset(path, symbol):
    """File offset of a symbol, by the program headers."""
    return load(str(path)).symbols[symbol].offset
