"""ftrace's text lines, from tracefs or from probectl --format trace."""

import re
from collections import Counter
from dataclasses import dataclass

# comm-pid [cpu] flags seconds.micros: event: rest. A string value may hold newlines, so a record
# ends where the next head begins.
_HEAD = re.compile(
    r"^ *(?P<comm>.{1,16}?)-(?P<pid>\d+) +\[(?P<cpu>\d{3,})\] (?P<flags>.{5}) +"
    r"(?P<time>\d+\.\d{6}): (?P<event>[^\s:]+): (?=\()", re.M)


@dataclass(frozen=True)
class Record:
    comm: str
    pid: int
    cpu: int
    flags: str
    time: str
    event: str
    text: str  # "(0x...) a=1 b=2"
    line: str

    @property
    def arguments(self):
        return self.text.split(")", 1)[1].strip()


def records(text):
    """Records in the order they stand; comment lines and loss notices are left out."""
    heads = list(_HEAD.finditer(text))
    result = []
    for i, head in enumerate(heads):
        end = heads[i + 1].start() if i + 1 < len(heads) else len(text)
        line = text[head.start():end].removesuffix("\n")
        result.append(Record(head["comm"].strip(), int(head["pid"]), int(head["cpu"]),
                             head["flags"], head["time"], head["event"],
                             text[head.end():head.start() + len(line)], line))
    return result


def counts(recs):
    return Counter(record.event for record in recs)
