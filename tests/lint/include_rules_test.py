"""A layer may include only itself and the layers that ARCHITECTURE.md allows it."""

import re

from source_tree import read, report, sources

# Longest prefix wins. The values are folders of the project that the layer may include from.
ALLOWED = {
    "base": [],
    "elf": ["base"],
    "engine/lang": ["base"],
    "engine/arch": ["base"],
    "engine/sys": ["base"],
    "engine/ring": ["base"],
    "engine/detour": ["base", "engine/arch", "engine/lang", "engine/ring"],
    "engine/event": ["base", "engine/lang", "engine/ring"],
    "engine/kernel": ["base", "engine/lang", "engine/sys", "engine/ring", "engine/event"],
    "engine/tracee": ["base", "elf", "engine/arch", "engine/sys"],
    "engine/probe": ["base", "elf", "engine/arch", "engine/lang", "engine/event", "engine/tracee",
                     "engine/sys", "engine/ring", "engine/detour"],
    "engine": ["base", "elf", "engine"],
    "daemon": ["base", "engine", "probed", "google", "daemon"],
    "client": ["base", "engine/lang", "elf", "probed", "google", "client"],
}
# Who may use which outside library.
LIBRARIES = {
    r"spdlog/": ("daemon", "client"),
    r"grpc|google/protobuf|.*\.pb\.h": ("daemon", "client"),
    r"capstone/|Zydis": ("engine/arch",),
    r"xbyak": ("engine/detour",),
    r"traceevent/|event-parse|trace-seq": ("engine/kernel",),
    r"libelf|gelf|elfutils/|dwarf|lzma": ("elf",),
    r"sys/ptrace\.h|sys/wait\.h": ("engine/sys", "engine/tracee", "daemon", "client"),
}


def layer_of(path, layers):
    fitting = [layer for layer in layers if path == layer or path.startswith(layer + "/")]
    return max(fitting, key=len) if fitting else None


def main():
    problems = []
    seen = 0
    for path in sources():
        layer = layer_of(path, ALLOWED)
        for number, line in enumerate(read(path).splitlines(), 1):
            own = re.match(r'#include "([^"]+)"', line)
            outside = re.match(r"#include <([^>]+)>", line)
            if own and not own[1].endswith(".pb.h"):
                seen += 1
                allowed = ALLOWED[layer] + [layer]
                if not any(own[1].startswith(folder + "/") for folder in allowed):
                    problems.append(f"{path}:{number}: {layer} may not include {own[1]}")
            name = (outside or own)[1] if (outside or own) else ""
            for library, users in LIBRARIES.items():
                if re.match(library, name) and layer_of(path, users) is None:
                    problems.append(f"{path}:{number}: {name} belongs to {', '.join(users)}")
    if seen < 20:
        problems.append(f"only {seen} includes seen: the test looks at the wrong place")
    report(problems)


main()
