"""Files and the tree stay small: the tail is what tires readers."""

from statistics import median

from source_tree import read, report, sources

LONGEST_FILE = 500
MEDIAN_FILE = 150


def main():
    lengths = {path: read(path).count("\n") for path in sources()}
    problems = [f"{path}: {length} lines, more than {LONGEST_FILE}"
                for path, length in lengths.items() if length > LONGEST_FILE]
    middle = median(lengths.values())
    if middle > MEDIAN_FILE:
        problems.append(f"the median file has {middle} lines, more than {MEDIAN_FILE}")
    print(f"{len(lengths)} files, median {middle} lines")
    report(problems)


main()
