#!/usr/bin/env python3
"""Measures the shape of src/ and fails when one measure has grown beyond what it was.

usage: check-shape.py [--root DIR]     print the measures beside their limits and targets
       check-shape.py --tighten        set each limit that has room to what is there now
       check-shape.py --self-test      count in a small tree of which the answers are known

A mechanism is named freely in its own folder: what is counted is how many other files know it.

The limits stand in LIMITS. Whoever makes a measure smaller lowers its limit in the same commit
(--tighten), so that it does not grow again; whoever has to raise one says why in the commit
message. The targets are those of the structural step (issue 33). Members and functions are counted
by reading, not by a compiler: a declaration that ends in `;` or `{` on the class's own level.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"')
TEST = re.compile(r"_test(?:_\w+)?\.(?:cc|h)$")

# measure: (limit, target). Those of LEAST may only grow. What stands in neither is only printed.
LIMITS: dict[str, tuple[int, int]] = {
    "Engine: functions": (45, 90),
    "Engine: members": (8, 28),
    "Engine: public members": (0, 1),
    "engine.h: lines": (133, 220),
    "engine.h: files that include it": (11, 12),
    "engine.h: .cc that see it": (40, 40),
    "protocols: functions of the largest class": (67, 80),
    "Request: members": (30, 30),
    "Request: bools": (0, 0),
    "Peer: members": (18, 18),
    "stages: places that write one": (1, 1),
    "Via::": (0, 0),
    "files that name release": (8, 9),
    "files that name prefetch": (7, 10),
    "files that name copies aside": (4, 5),
    "files that name grants": (2, 5),
    "files that name one-copy": (5, 5),
    "engine.handoff outside protocols": (18, 20),
    "engine.guard outside protocols": (0, 0),
    "entries of one statement, by hand": (1, 20),
    "entries of a large count, by hand": (0, 12),
    '"MPI_ in api': (178, 220),
    "comm size and rank in collectives": (0, 0),
}  # fmt: skip
LEAST: dict[str, tuple[int, int]] = {"HEADWAY_CHECK": (275, 40)}
# The table of what a recorder is told names every mechanism, as the tables of options and counters do.
EVENTS = r"base/event_sink\.h"


def code_of(text: str) -> str:
    return COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


class Tree:
    """The library's sources without tests and comments."""

    def __init__(self, root: Path) -> None:
        self.code: dict[str, str] = {}
        for path in sorted((root / "src").rglob("*")):
            if path.suffix in {".h", ".cc", ".inl"} and not TEST.search(path.name):
                self.code[path.relative_to(root / "src").as_posix()] = code_of(path.read_text())

    def count(self, pattern: str, but: str = r"(?!)") -> tuple[int, int]:
        """How often a pattern stands in the code, and in how many files."""
        found = [len(re.findall(pattern, code)) for name, code in self.code.items() if not re.match(but, name)]
        return sum(found), sum(n > 0 for n in found)

    def seeing(self, header: str) -> list[str]:
        """The .cc files that include a header, by themselves or by what they include."""
        includes = {name: re.findall(r'^\s*#\s*include "([^"]+)"', code, re.MULTILINE) for name, code in self.code.items()}
        seeing, rest = {header}, [header]
        while rest:
            seen = rest.pop()
            more = [name for name, included in includes.items() if seen in included and name not in seeing]
            seeing.update(more)
            rest += more
        return sorted(name for name in seeing if name.endswith(".cc"))

    def body(self, file: str, kind: str, name: str) -> str:
        """The inside of a class or struct."""
        code = self.code.get(file, "")
        found = re.search(rf"\b{kind}\s+{name}\b[^;{{]*{{", code)
        return inside(code, found.end() - 1) if found else ""


def inside(code: str, brace: int) -> str:
    depth = 0
    for i in range(brace, len(code)):
        depth += {"{": 1, "}": -1}.get(code[i], 0)
        if depth == 0:
            return code[brace + 1 : i]
    return code[brace + 1 :]


def declarations(body: str) -> list[str]:
    """What is declared on the class's own level; bodies of functions and of inner classes are cut out."""
    flat, depth = [], 0
    for c in re.sub(r"^[ \t]*#.*$", "", body, flags=re.MULTILINE):
        if c == "{":
            depth += 1
            if depth == 1:
                flat.append("{")
        elif c == "}":
            depth -= 1
            if depth == 0:
                flat.append("}")
        elif depth == 0:
            flat.append(c)
    text = re.sub(r"\b(?:public|private|protected):", "", "".join(flat))
    # A body ends a function; braces after `=` or a name are values, and go on to their `;`.
    text = re.sub(r"(\)[\w\s]*?(?:->\s*[\w:&* ]+)?(?::[^;]*?)?)\{\}(?!\s*;)", r"\1;", text)
    text = re.sub(r"\{\}", "", text)
    return [" ".join(part.split()) for part in text.split(";") if part.strip()]


def functions_and_members(body: str) -> tuple[int, int]:
    functions = members = 0
    for part in declarations(body):
        part = re.sub(r"^(?:template <[^>]*>|\[\[[^\]]*\]\])\s*", "", part)
        if re.match(r"(?:friend|using|typedef|static_assert|enum|struct|class|union)\b(?!.*\b\w+\s+\w+\s*=)", part):
            continue
        if re.match(r"static constexpr\b[^(]*=", part):
            continue
        call = part.split("=")[0]
        if "(" in call and not re.search(r"\(\*\s*\w+\)\s*\(", call):
            functions += 1
        else:
            members += 1 + call.count(",") * ("<" not in call and "(" not in call)
    return functions, members


def public_members(body: str) -> int:
    parts = re.split(r"\b(public|private|protected):", body)
    access, members = "private", functions_and_members(parts[0])[1] * 0
    for i in range(1, len(parts), 2):
        access = parts[i]
        if access == "public":
            members += functions_and_members(parts[i + 1])[1]
    return members


def entries(tree: Tree) -> tuple[int, int]:
    """Entries in api/ that consist of one statement, and those of `_c` names."""
    single = large = 0
    for name, code in tree.code.items():
        if not name.startswith("api/"):
            continue
        for found in re.finditer(r"HEADWAY_ENTRY(?:_R)?\((?:[\w ]+\*?, )?(MPI_\w+)\)\([^;{]*\{", code):
            text = inside(code, found.end() - 1)
            single += len(re.findall(r";", text)) == 1
            large += found[1].endswith("_c")
    return single, large


def measure(root: Path) -> dict[str, int]:
    tree = Tree(root)
    engine = tree.body("protocols/engine.h", "class", "Engine")
    # What it is built on counts with it, or its members could hide there.
    below = [tree.body(f"protocols/{file}", "class", name)
             for file, name in (("messages/messages.h", "Messages"), ("core.h", "Core"), ("links.h", "Links"))]  # fmt: skip
    request = tree.body("protocols/request.h", "struct", "Request")
    peer = tree.body("protocols/peer.h", "struct", "Peer")
    functions, members = functions_and_members(engine)
    classes = [functions_and_members(inside(code, found.end() - 1))[0]
               for name, code in tree.code.items() if name.startswith("protocols/")
               for found in re.finditer(r"\b(?:class|struct)\s+\w+\b[^;{(]*\{", code)]  # fmt: skip
    stages = tree.count(r"(?:->|\.)stage_? = ")
    single, large = entries(tree)
    return {
        "Engine: functions": functions,
        "Engine: members": members,
        "Engine: public members": sum(map(public_members, [engine, *below])),
        "engine.h: lines": tree.code.get("protocols/engine.h", "").count("\n"),
        "engine.h: files that include it": tree.count(r'#include "protocols/engine\.h"')[1],
        "engine.h: .cc that see it": len(tree.seeing("protocols/engine.h")),
        "protocols: functions of the largest class": max(classes, default=0),
        "Request: members": functions_and_members(request)[1],
        "Request: bools": len(re.findall(r"\bbool \w+ =", request)),
        "Peer: members": functions_and_members(peer)[1],
        "stages: places that write one": stages[0],
        "Via::": tree.count(r"\bVia::")[0],
        "files that name release": tree.count(r"(?i)\b(?!memory_order_)\w*(?:releasable|release_|_release|foresee)\w*", rf"(?:guard|settings|protocols/release)/|{EVENTS}")[1],
        "files that name prefetch": tree.count(r"(?i)\b\w*prefetch\w*", rf"(?:guard|settings|protocols/prefetch)/|base/line|{EVENTS}")[1],
        "files that name copies aside": tree.count(r"\b\w*aside\w*", r"(?:guard|settings|protocols/copies)/")[1],
        "files that name grants": tree.count(r"\b\w*grant\w*", r"protocols/ways/")[1],
        "files that name one-copy": tree.count(r"(?i)\b\w*one_?copy\w*", r"(?:settings|protocols/ways)/")[1],
        "engine.handoff outside protocols": tree.count(r"\bengine(?:\(\))?(?:\.|->)handoff\b", r"protocols/")[0],
        "engine.guard outside protocols": tree.count(r"\bengine(?:\(\))?(?:\.|->)guard\b", r"protocols/")[0],
        "entries of one statement, by hand": single,
        "entries of a large count, by hand": large,
        '"MPI_ in api': sum(len(re.findall(r'"MPI_\w+', code)) for name, code in tree.code.items() if name.startswith("api/")),
        "comm size and rank in collectives": sum(
            len(re.findall(r"\bcomm(?:_|\(\))?(?:->|\.)(?:size|rank)\b", code))
            for name, code in tree.code.items() if name.startswith("collectives/")
        ),
        "HEADWAY_CHECK": tree.count(r"\bHEADWAY_CHECK\(", r"base/check\.h")[0],
        "lines of src without tests": sum(code.count("\n") for code in tree.code.values()),
    }  # fmt: skip


def judge(found: dict[str, int], out=print) -> int:
    bad = 0
    width = max(len(name) for name in found)
    out(f"{'':{width}}  now  limit  target")
    for name, value in found.items():
        if name not in LIMITS and name not in LEAST:
            out(f"{name:{width}} {value:5}")
            continue
        limits, least = (LEAST, True) if name in LEAST else (LIMITS, False)
        limit, target = limits[name]
        grown = value < limit if least else value > limit
        remark = ""
        if grown:
            remark = "  SHRUNK" if least else "  GROWN"
            bad += 1
        elif value != limit:
            remark = "  has room: --tighten"
        out(f"{name:{width}} {value:5} {limit:5} {target:6}{remark}")
    return bad


def tightened(text: str, found: dict[str, int]) -> str:
    """The text of this script with the limits of what is found, where those have room."""

    def place(match: re.Match[str]) -> str:
        name, limit = match[2], int(match[4])
        now = found.get(name, limit)
        best = max(now, limit) if name in LEAST else min(now, limit)
        return f"{match[1]}{name}{match[3]}{best},"

    return re.sub(r"""(["'])((?:(?!\1).)+)(\1: \()(\d+),""", place, text)


# ------------------------------------------------------------------------------------ self-test

SMALL = """// a comment with Via::none
class Engine final : public Base {
 public:
  Engine() : a_(0) {}
  void f(int x = 3);
  template <class T>
  bool g() const { return x_ == 1; }  // Via::two
  int shown = 0;
  enum class Kind : int { a, b };
  struct Inner { int no, nor; };
  static constexpr int limit = 3;
  using Word = int;

 private:
  [[gnu::noinline]] void h();
  int a_, b_ = 2;
  Map<int, int> map_{};
  void (*call_)(int) = nullptr;
  friend class Other;
};
"""


def self_test() -> int:
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "src/protocols/engine.h"
        path.parent.mkdir(parents=True)
        path.write_text(SMALL)
        (path.parent / "engine_test.cc").write_text("Via::x; HEADWAY_CHECK(1);")
        (path.parent / "a.cc").write_text("HEADWAY_CHECK(a->via == Via::shm);\n// #include \"protocols/engine.h\"\n")
        # b.h and c.h have each other; d.cc sees the engine by both, e.cc by itself, a.cc not at all.
        for name, included in (("b.h", "c.h"), ("c.h", "b.h"), ("c.h", "engine.h"), ("d.cc", "b.h"),
                               ("e.cc", "engine.h"), ("f_test.cc", "engine.h")):  # fmt: skip
            with (path.parent / name).open("a") as file:
                file.write(f'#include "protocols/{included}"\n')
        found = measure(Path(folder))
        expected = {"Engine: functions": 4, "Engine: members": 5, "Engine: public members": 1, "Via::": 1,
                    "HEADWAY_CHECK": 1, "engine.h: lines": SMALL.count("\n"),
                    "engine.h: files that include it": 2, "engine.h: .cc that see it": 2}  # fmt: skip
        problems += [f"{name}: {found[name]} instead of {n}" for name, n in expected.items() if found[name] != n]
    lines: list[str] = []
    steady = {name: limit for table in (LIMITS, LEAST) for name, (limit, _) in table.items()}
    if judge(steady, lines.append):
        problems.append("a tree that stays as it is is blamed")
    for name in steady:
        for by in (1, -1):
            noticed = judge({**steady, name: steady[name] + by}, lines.append)
            if noticed != ((by < 0) if name in LEAST else (by > 0)):
                problems.append(f"{name} by {by}: noticed {noticed} times")
    for name, limit in steady.items():
        now = limit + (1 if name in LEAST else -1)
        quote = "'" if '"' in name else '"'
        line = f"    {quote}{name}{quote}: ({limit}, 7),"
        if tightened(line, {name: now}) != line.replace(f"({limit},", f"({now},"):
            problems.append(f"{name}: its limit is not set")
        if tightened(line, {name: 2 * limit - now}) != line:
            problems.append(f"{name}: its limit is loosened")
    for problem in problems:
        print(problem)
    print(f"shape, self-test: {len(problems)} problems")
    return 1 if problems else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--tighten", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    found = measure(args.root)
    bad = judge(found)
    if args.tighten:
        this = Path(__file__)
        this.write_text(tightened(this.read_text(), found))
    if bad:
        print(f"shape: {bad} measures are beyond their limits in scripts/check-shape.py")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
