"""The head of an ftrace line, rebuilt from its parts, to hold a line to ftrace's layout."""


def line(record, flags):
    seconds, micros = record.time.split(".")
    return (f"{record.comm:>16}-{record.pid:<7} [{record.cpu:03}] {flags} "
            f"{seconds:>5}.{micros}: {record.event}: {record.text}")
