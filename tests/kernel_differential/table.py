"""Fetch arguments for the program values.c, by hand and by a seeded generator."""

import random

INTEGERS = [f"{sign}{bits}" for sign in "usx" for bits in (8, 16, 32, 64)]
REGISTERS = ("ax bx cx dx si di bp sp r8 r9 r10 r11 r12 r13 r14 r15 ip cs ss flags "
             "orig_ax").split()
# Offsets of struct Values.
NUMBERS = (0, 1, 2, 4, 8, 12, 16, 24)
TEXT, TEXTS, LETTERS, LETTER, CHAIN, NULL = 32, 40, 72, 80, 88, 96
RAW, EMPTY, EDGE, CUT, LONGER, WORDS = 104, 112, 120, 128, 136, 144
NODE_VALUE, NODE_NAME = 8, 16


def of_types(source, types=INTEGERS):
    return [f"{source}:{kind}" for kind in types]


def numbers():
    for at in NUMBERS:
        yield from of_types(f"+{at}(%si)")
    yield from (f"+{at}(%si)" for at in NUMBERS)
    yield from (f"+u{at}(%si):x32" for at in NUMBERS)
    yield f"+{LETTER}(%si):char"
    yield f"+{LETTERS + 3}(%si):char"


def registers():
    for register in REGISTERS:
        yield f"%{register}"
        yield from of_types(f"%{register}", ("u8", "s16", "u32", "s64", "x8"))
    yield from of_types("%cx")
    yield "%dx:char"
    yield "$stack"
    yield "$stack:u64"
    yield from (f"$stack{n}" for n in range(0, 14))
    yield "$stack010:u64"
    yield from of_types("$stack0", ("u8", "s32", "x16"))
    yield "+8($stack)"
    yield "+0($stack):x8[16]"


def arrays():
    for count in (1, 2, 5):
        yield from of_types(f"+{LETTERS}(%si)", [f"{kind}[{count}]" for kind in INTEGERS])
    yield f"+{LETTERS}(%si):char[8]"
    yield f"+{WORDS}(%si):x64[64]"
    yield f"+{WORDS}(%si):u8[64]"
    yield f"+{WORDS}(%si):s16[0x10]"
    yield f"+0(+{NULL}(%si)):u32[3]"


def bitfields():
    for container in (8, 16, 32, 64):
        yield f"+{WORDS}(%si):b{container}@0/{container}"
        yield f"+{WORDS + 8}(%si):b1@{container - 1}/{container}"
        yield f"%cx:b{container // 2}@{container // 4}/{container}"
        yield f"\\0x5a5a5a5a:b3@{container - 5}/{container}"
        yield f"+{WORDS}(%si):b5@2/{container}[4]"
    yield "$stack0:b7@1/16"
    yield f"+0(+{NULL}(%si)):b4@0/8"


def strings():
    for at in (TEXT, RAW, EMPTY, EDGE, CUT, NULL):
        yield f"+0(+{at}(%si)):string"
        yield f"+0(+{at}(%si)):ustring"
    yield f"+u0(+u{TEXT}(%si)):string"
    yield "+0(%dx):string"
    yield "+2(%dx):string"
    yield f"+{TEXT}(%si):string[1]"
    yield f"+{TEXTS}(%si):string[4]"
    yield f"+{TEXTS}(%si):ustring[2]"
    yield f"+u{TEXTS}(%si):string[3]"
    yield f"+{LETTERS}(%si):string"
    yield "$comm"
    yield "$COMM:string"


def chains():
    yield f"+{NODE_VALUE}(+{CHAIN}(%si)):s64"
    yield f"+{NODE_VALUE}(+0(+{CHAIN}(%si))):u16"
    yield f"+{NODE_VALUE}(+0(+0(+{CHAIN}(%si)))):s8"
    yield f"+{NODE_NAME}(+0(+0(+{CHAIN}(%si)))):string"
    yield f"+{NODE_NAME}(+0(+{CHAIN}(%si))):char[6]"
    yield f"-8(+{NODE_VALUE}(+{CHAIN}(%si))):u32"
    yield f"+0(+{NULL}(%si))"
    yield from of_types(f"+4(+{NULL}(%si))", ("s8", "u16", "x32", "s64"))
    yield f"+8(+{CHAIN}(%si))ignored:s64"
    yield f"+4294967304(+{CHAIN}(%si)):s64"


def constants():
    for number in ("5", "0x5", "-5", "+5", "+-5", "++5", "300", "0x41", "0xffffffffffffffff"):
        yield f"\\{number}"
        yield from of_types(f"\\{number}", ("u8", "s8", "u32", "s64", "x16"))
    yield "\\0x41:char"
    yield "+0(\\0):u8"
    yield "+0(\\0):string"
    yield "\\1:string"


def file_words(code_offset):
    """@+offset, inside the code that is mapped."""
    yield f"@+{code_offset:#x}:x32"
    yield f"@+{code_offset:#x}:u8[8]"


def globals_at(word, text):
    """@address of global_word and global_text."""
    yield from of_types(f"@{word:#x}", ("u8", "s16", "x64", "u32"))
    yield f"@{word:#x}:b12@4/32"
    yield f"@{word}:x16[4]"
    yield f"@{text:#x}:string"
    yield f"@{text + 2:#x}:char[10]"
    yield "@0x10:u64"
    yield "@0x10:string"


def generated(count, seed=20):
    """Random but legal arguments. No load but the outermost can fail, because then the kernel shows
    stale bytes; and none goes far up the stack, where libc keeps a number that is random."""
    rng = random.Random(seed)
    sources = ["%si", "%dx", "$stack", f"+{CHAIN}(%si)", f"+0(+{CHAIN}(%si))", f"+{TEXT}(%si)",
               f"+u{CHAIN}(%si)", f"+{TEXTS + 8}(%si)"]
    for _ in range(count):
        unsafe = "u" if rng.random() < 0.2 else ""
        at = rng.choice([rng.randrange(0, 16), -rng.randrange(1, 9), rng.randrange(0, 300)])
        place = f"{'-' if at < 0 else '+'}{unsafe}{abs(at):{rng.choice(['d', '#x'])}}"
        source = rng.choice(sources)
        if source == "$stack" and at > 60:
            source = "%si"
        fetch = f"{place}({source})"
        kind = rng.choice(INTEGERS + ["char", ""])
        if rng.random() < 0.3:
            container = rng.choice((8, 16, 32, 64))
            width = rng.randrange(1, container + 1)
            kind = f"b{width}@{rng.randrange(0, container - width + 1)}/{container}"
        if kind and not unsafe and rng.random() < 0.3:
            kind += f"[{rng.randrange(1, 9)}]"
        yield fetch + (f":{kind}" if kind else "")


def entry_arguments():
    """Everything that does not depend on where the program is loaded."""
    for part in (numbers, registers, arrays, bitfields, strings, chains, constants):
        yield from part()
    yield from generated(420)


FILTERED = (f"n=%di:s64 low=%di:u8 middle=%di:b3@1/32 thousands=%r9:s32 minus=%r8:s16 "
            f"large=%cx:x64 u8=+0(%si):u8 s8=+1(%si):s8 letter=+{LETTER}(%si):char text=+0(%dx):string "
            f"hello=+0(+{TEXT}(%si)):string empty=+0(+{EMPTY}(%si)):string cut=+0(+{CUT}(%si)):string")


def filters(count, seed=7):
    """Expressions on the fields of FILTERED, for `n` from 0 on. What kernels refuse (a sign for
    what has none, numbers that do not fit, `~ ""`) is compared in tests/lang."""
    rng = random.Random(seed)
    signed, unsigned = ("n", "thousands", "minus", "s8"), ("low", "middle", "u8", "large")
    constants = [*range(12), 20, 39, 100, "0x10", "017"]
    texts = ["world", "hello", "", "w*", "*o*", "?ello", "*", "worl", "worlds", "[w]orld", "[!h]*",
             "h?l*o", "(fault)", "*fault*", "ccccccccc"]

    def one():
        if rng.random() < 0.35:
            text = rng.choice(texts)
            operator = rng.choice(["==", "!=", "~"] if text else ["==", "!="])
            field = rng.choice(["text", "hello", "empty", "cut"])
            # Of a string that could not be read the kernel writes nothing, and then looks at what
            # the buffer held before: whether that is empty, no two runs agree.
            text = "world" if field == "cut" and not text else text
            return f'{field} {operator} "{text}"'
        operator = rng.choice(["==", "!=", "<", "<=", ">", ">=", "&"])
        sign = rng.choice(["", "-"])
        return f"{rng.choice(signed if sign else signed + unsigned)} {operator} " \
               f"{sign}{rng.choice(constants)}"

    def some(depth):
        if depth == 0 or rng.random() < 0.3:
            return one()
        inner = f"{some(depth - 1)} {rng.choice(['&&', '||'])} {some(depth - 1)}"
        return rng.choice([f"({inner})", f"!({inner})", inner])
    yield from ("n & 1", "n == 7", "letter == 81", "letter != 81", "n >= 5 && n < 12",
                "large == 0x1234567890abcdef", "thousands >= 5000", "minus == -5", "u8 == 254")
    for _ in range(count):
        yield some(rng.randrange(4))


def without_the_daemon(arguments):
    """Those that code in the program can fetch."""
    return [argument for argument in arguments if not argument.lower().startswith("$comm")]


def size_of(argument):
    """An upper bound of the bytes it takes in a record."""
    kind = argument.rsplit(":", 1)[1] if ":" in argument else "x64"
    count = int(kind[kind.index("[") + 1:-1], 0) if kind.endswith("]") else 1
    return 8 * count


def pack(arguments, head, most=60, room=2000, line=3900):
    """Definition lines `head(i)` with as many arguments as an event may have, named a0, a1..."""
    lines, text, used, members = [], "", 0, 0
    for i, argument in enumerate(arguments):
        word = f" a{i}={argument}"
        full = members == most or used + size_of(argument) > room or len(text) + len(word) > line
        if not text or full:
            if text:
                lines.append(text)
            text, used, members = head(len(lines)), 0, 0
        text, used, members = text + word, used + size_of(argument), members + 1
    return lines + [text]
