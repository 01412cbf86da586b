"""Where call sites stand: from an offset in a program's or a library's file to file:line and function, by DWARF.

One pass over a file for all the addresses wanted of it: compilation units that hold none are passed over unread.
A site is the address behind its call, so what is looked up is one byte before. The line is the innermost one, and so
is the function where the compiler put one into another. Debug information may lie in a file of its own (by build id,
or .gnu_debuglink). Without any, a site gets its function and the offset in it, by the table of symbols; without that
it stays an offset in its file.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Iterator

from .demangle import demangled
from .model import Rank, Site

SCOPES = ("DW_TAG_namespace", "DW_TAG_module", "DW_TAG_class_type", "DW_TAG_structure_type", "DW_TAG_union_type")
DEBUG = Path("/usr/lib/debug")
Ranges = list[tuple[int, int]]
NEAR = ("DW_FORM_ref1", "DW_FORM_ref2", "DW_FORM_ref4", "DW_FORM_ref8", "DW_FORM_ref_udata")  # within the unit


@dataclass(frozen=True)
class Place:
    file: str = ""
    line: int = 0
    function: str = ""


def resolve(ranks: list[Rank]) -> list[str]:
    """Gives the sites of all ranks their lines. What could not be told, and why."""
    wanted: dict[str, set[int]] = {}
    for rank in ranks:
        for site in rank.sites.values():
            if site.module and not site.file:
                wanted.setdefault(site.module, set()).add(site.offset)
    if not wanted:
        return []
    try:
        import elftools  # noqa: F401
    except ImportError:
        return ["call sites are offsets in files: Python's pyelftools, which knows their lines, is not installed"]
    notes, found = [], {}
    began = min((r.header.get("started", 0) for r in ranks), default=0)
    for module in sorted(wanted):
        if began and is_newer(module, began):
            notes.append(f"{module} was built again since this was recorded: its lines may be others")
        found[module], note = of_module(module, sorted(wanted[module]))
        notes += [note] if note else []
    for rank in ranks:
        for number, site in rank.sites.items():
            place = found.get(site.module, {}).get(site.offset) if not site.file else None
            if place:
                rank.sites[number] = replace(site, file=place.file, line=place.line, function=place.function)
    return notes


def is_newer(module: str, ns: int) -> bool:
    """Whether that file was written after this moment (ns since 1970)."""
    try:
        return os.stat(module).st_mtime_ns > ns
    except OSError:
        return False


def of_module(module: str, offsets: list[int]) -> tuple[dict[int, Place], str]:
    """The places of these return addresses, as far as they can be told, and a sentence where they cannot."""
    path = Path(module)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return {}, f"{module} is no file: its call sites stay offsets"
    except (OSError, ValueError):
        return {}, f"{module} is not there any more: its call sites stay offsets"
    addresses = [offset - 1 for offset in offsets]
    try:
        symbols, places = symbols_of(path, addresses), {}
        for debug in debug_files(path):
            places = lines_of(debug, addresses)
            if debug != path and not symbols:
                symbols = symbols_of(debug, addresses)
            if places:
                break
    except Exception as problem:  # of a file that is no ELF, or a broken one, pyelftools raises whatever happens to it
        return {}, f"{module} cannot be understood ({type(problem).__name__}): its call sites stay offsets"
    found = {}
    for offset, address in zip(offsets, addresses):
        place, symbol = places.get(address), symbols.get(address)
        if place:
            found[offset] = replace(place, function=demangled(place.function or (symbol[0] if symbol else "")))
        elif symbol:
            found[offset] = Place(function=f"{demangled(symbol[0])}+0x{offset - symbol[1]:x}")
    return found, "" if places else f"{module} has no debug information (-g): its call sites have no lines"


# ---- files -------------------------------------------------------------------------------------
def debug_files(path: Path) -> Iterator[Path]:
    """Where its debug information may be: in itself, or apart."""
    from elftools.elf.elffile import ELFFile

    yield path
    with open(path, "rb") as file:
        elf = ELFFile(file)
        candidates = []
        for section in elf.iter_sections():
            if section.name == ".note.gnu.build-id":
                for note in section.iter_notes():
                    name = str(note["n_desc"])
                    candidates.append(DEBUG / ".build-id" / name[:2] / f"{name[2:]}.debug")
            if section.name == ".gnu_debuglink":
                name = section.data().split(b"\0")[0].decode("utf-8", "replace")
                folder = path.resolve().parent
                if name and "/" not in name:
                    candidates += [folder / name, folder / ".debug" / name, DEBUG / str(folder).lstrip("/") / name]
    for candidate in candidates:
        if candidate.is_file() and candidate.resolve() != path.resolve():
            yield candidate


def symbols_of(path: Path, addresses: list[int]) -> dict[int, tuple[str, int]]:
    """The function around each address, and where it begins."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    known: list[tuple[int, int, str]] = []
    with open(path, "rb") as file:
        elf = ELFFile(file)
        tables = [section for section in elf.iter_sections() if isinstance(section, SymbolTableSection)]
        for table in sorted(tables, key=lambda section: section.name != ".symtab")[:1]:
            for symbol in table.iter_symbols():
                if symbol["st_info"]["type"] in ("STT_FUNC", "STT_GNU_IFUNC") and symbol["st_shndx"] != "SHN_UNDEF":
                    known.append((symbol["st_value"], symbol["st_size"], symbol.name))
    # Of several names of one place the compiler's own ones (outer.localalias) come first, and the last one is taken.
    known.sort(key=lambda one: (one[0], "." not in one[2], one[1], one[2]))
    begins = [begin for begin, _size, _name in known]
    found = {}
    for address in addresses:
        place = bisect_right(begins, address) - 1
        if place >= 0:
            begin, size, name = known[place]
            if address < begin + size or not size:
                found[address] = (name, begin)
    return found


# ---- DWARF -------------------------------------------------------------------------------------
def lines_of(path: Path, addresses: list[int]) -> dict[int, Place]:
    from elftools.elf.elffile import ELFFile

    found: dict[int, Place] = {}
    with open(path, "rb") as file:
        elf = ELFFile(file)
        if not elf.has_dwarf_info(True):
            return found
        dwarf = elf.get_dwarf_info(follow_links=False)
        for unit in dwarf.iter_CUs():
            top = unit.get_top_DIE()
            if top.tag != "DW_TAG_compile_unit":
                continue
            ranges = ranges_of(dwarf, unit, top)
            told = {"DW_AT_low_pc", "DW_AT_ranges"} & top.attributes.keys()
            some = within(addresses, ranges) if ranges or told else addresses
            if not some:
                continue
            lines = unit_lines(dwarf, unit, some)
            functions = unit_functions(dwarf, unit, top, sorted(lines))
            for address, (name, line) in lines.items():
                found[address] = Place(name, line, functions.get(address, ""))
    return found


def within(addresses: list[int], ranges: Ranges) -> list[int]:
    """Of sorted addresses those in any of the ranges."""
    found: set[int] = set()
    for begin, end in ranges:
        found.update(addresses[bisect_left(addresses, begin) : bisect_left(addresses, end)])
    return sorted(found)


def ranges_of(dwarf: Any, unit: Any, die: Any) -> Ranges:
    """Where the code of an entry is."""
    attributes = die.attributes
    if "DW_AT_ranges" in attributes:
        base_of_unit = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        base, found = base_of_unit.value if base_of_unit else 0, []
        lists = dwarf.range_lists()
        for entry in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit) if lists else ():
            if hasattr(entry, "base_address"):
                base = entry.base_address
            else:
                start = 0 if getattr(entry, "is_absolute", False) else base
                found.append((start + entry.begin_offset, start + entry.end_offset))
        return [(begin, end) for begin, end in found if begin]  # at 0: code that the linker threw away
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        low, high = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        return [(low, high.value if high.form == "DW_FORM_addr" else low + high.value)] if low else []
    return []


def unit_lines(dwarf: Any, unit: Any, addresses: list[int]) -> dict[int, tuple[str, int]]:
    """File and line of each address, by the unit's table of lines."""
    program = dwarf.line_program_for_CU(unit)
    found: dict[int, tuple[str, int]] = {}
    if program is None:
        return found
    names: dict[int, str] = {}
    before, thrown = None, False  # thrown away by the linker: a sequence at 0
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is None:
            thrown = state.address == 0
        elif before.address < state.address and not thrown:
            first = bisect_left(addresses, before.address)
            for address in addresses[first : bisect_left(addresses, state.address)]:
                if before.line:
                    if before.file not in names:
                        names[before.file] = file_name(program, unit, before.file)
                    found[address] = (names[before.file], before.line)
        before = None if state.end_sequence else state
    return found


def file_name(program: Any, unit: Any, number: int) -> str:
    header = program.header
    new = header["version"] >= 5  # counts files and folders from 0, and the first folder is the unit's
    files, folders = header["file_entry"], header["include_directory"]
    place = number if new else number - 1
    if not 0 <= place < len(files):
        return "unknown"
    entry = files[place]
    folder_number, folder = entry["dir_index"], b""
    if new and folder_number < len(folders):
        folder = folders[folder_number]
    elif not new and 0 < folder_number <= len(folders):
        folder = folders[folder_number - 1]
    attributes = unit.get_top_DIE().attributes
    made_in = attributes["DW_AT_comp_dir"].value if "DW_AT_comp_dir" in attributes else b""
    parts = [part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part) for part in
             (made_in, folder, entry["name"])]  # fmt: skip
    return os.path.normpath(os.path.join(*parts))


def unit_functions(dwarf: Any, unit: Any, top: Any, addresses: list[int]) -> dict[int, str]:
    """The innermost function around each address, those put into others too."""
    found: dict[int, str] = {}
    for hidden in (False, True):  # second: what stands in a function's entry and not in its code, as lambdas do
        stack = [(top, [address for address in addresses if address not in found])]
        while stack and stack[0][1]:
            parent, wanted = stack.pop()
            for die in children(unit, parent):
                if die.tag in ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine", "DW_TAG_lexical_block"):
                    some = within(wanted, ranges_of(dwarf, unit, die))
                    if die.tag != "DW_TAG_lexical_block":
                        found |= dict.fromkeys(some, name_of(die) if some else "")
                    if hidden and die.tag != "DW_TAG_inlined_subroutine":
                        some = wanted
                elif die.tag in SCOPES:
                    some = wanted
                else:
                    continue
                if some and die.has_children:
                    stack.append((die, some))
    return found


def children(unit: Any, parent: Any) -> Iterator[Any]:
    """The entries right below one. Goes forward only, whatever a broken file says of who stands beside whom."""
    from elftools.dwarf.die import DIE

    offset, end, depth = parent.offset + parent.size, unit.cu_offset + unit.size, 1
    while parent.has_children and offset < end:
        die = DIE(unit, parent.stream, offset)
        offset += die.size
        if die.is_null():
            depth -= 1
            if depth == 0:
                return
            continue
        if depth == 1:
            yield die
        if die.has_children:
            beside = die.attributes.get("DW_AT_sibling")
            there = unit.cu_offset + beside.value if beside and beside.form in NEAR else 0
            if there > offset:
                offset = there
            else:
                depth += 1


def name_of(die: Any) -> str:
    for _ in range(8):  # from a copy to what it was copied from
        if "DW_AT_name" in die.attributes:
            value = die.attributes["DW_AT_name"].value
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        origin = next((a for a in ("DW_AT_abstract_origin", "DW_AT_specification") if a in die.attributes), None)
        if origin is None:
            break
        try:
            die = die.get_DIE_from_attribute(origin)
        except Exception:  # it lies in a file that is not there, or nowhere
            break
    return ""
