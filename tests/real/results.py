"""What the runs of real codes left, and the failures that are known."""

import fcntl
import fnmatch
import json
import re


class Results:
    """code -> MPI -> version, built_s, tests (test -> [passed, skipped, failures]), timed, seconds; kept in a file,
    to which several runs may add at the same time."""

    def __init__(self, path):
        self.path = path

    @property
    def table(self):
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def note(self, code, mpi, tests=None, **values):
        with open(self.path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            table = self.table
            row = table.setdefault(code, {}).setdefault(mpi, {})
            row.update(values)
            row.setdefault("tests", {}).update(tests or {})
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(table, indent=1) + "\n")
            new.rename(self.path)


class Known:
    """Failures that are known: a failure's story, with * for any text -> its reason."""

    def __init__(self, reasons):
        self.reasons = reasons

    @staticmethod
    def read(path):
        reasons = {}
        for line in path.read_text().splitlines() if path.exists() else []:
            if not line.strip() or line.startswith("#"):
                continue
            match = re.fullmatch(r"(\S+: \S.*?) = (\S.*)", line)
            if not match:
                raise SystemExit(f"{path}: no such line is known: {line}")
            reasons[match[1]] = match[2]
        return Known(reasons)

    def of(self, story):
        return next((known for known in self.reasons if fnmatch.fnmatchcase(story, known)), None)

    def problems(self, ends, tests):
        """Sentences; none if all is as expected. `tests`: CODE.TEST of those that were run."""
        found = [f"{story} (the same test on a peer: --mpi mpich)" for story in ends.failed if not self.of(story)]
        met = {self.of(story) for story in ends.failed}
        found += [f"{known} stands in known.txt, and does not fail" for known in self.reasons
                  if known not in met and known.partition(": ")[0] in tests]
        return found
