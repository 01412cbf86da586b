"""The entries of Fortran's interfaces in C (runtime/fortran.h): of a procedure one for all forms, or,
where it takes buffers, one with their addresses and one with descriptors for mpi_f08."""

from __future__ import annotations

from plan import PARTITIONED, RESULTS, STRIPPED, Argument, Procedure

HEAD = """/* {what}
   {notice} Compiled twice (fortran.h). */
#include <stdlib.h>

#include "fortran.h"

/* clang-format off */
"""
# Whose datatypes a list in a collective of neighbours holds.
SIDES = {"sendtypes": "HF_DESTINATIONS", "recvtypes": "HF_SOURCES"}


class Entry:
    """One entry: its parameters, what comes before the call of C, the call's arguments, what comes after
    it whatever happened, and what after success."""

    def __init__(self, procedure: Procedure, form: str):
        self.procedure = procedure
        self.form = form  # all, old, f08, f08ts
        self.parameters: list[str] = []
        self.lengths: list[str] = []  # hidden, behind all others
        self.before: list[str] = []
        self.conditions: list[str] = []  # calls that end with a code, before the call
        self.arguments: list[str] = []
        self.success: list[str] = []
        self.after: list[str] = []
        self.buffers: list[str] = []
        self.lists = False
        for argument in procedure.arguments:
            getattr(self, argument.role)(argument)

    # ---- what the call is told of errors

    @property
    def on(self) -> str:
        return f"HF_{self.procedure.told}(*{self.procedure.teller})" if self.procedure.teller else "HF_SELF"

    @property
    def call(self) -> str:
        return f'"{self.procedure.name}"'

    @property
    def no_memory(self) -> str:
        return f"hf_no_memory({self.call}, {self.on})"

    # ---- by role

    def number(self, a: Argument) -> None:
        const = "const " if a.const or a.c.depth == 0 else ""
        self.parameters.append(f"{const}{a.c.type}* {a.name}")
        if a.c.depth == 0:
            self.arguments.append(f"*{a.name}")
        elif a.c.depth == 2:  # a list of triples
            self.arguments.append(f"({a.c.type}(*)[3]){a.name}")
        else:
            self.arguments.append(a.name)

    def handle(self, a: Argument) -> None:
        if a.c.depth == 0:
            self.parameters.append(f"const MPI_Fint* {a.name}")
            self.arguments.append(f"hf_from_{a.short}(*{a.name})")
            return
        self.parameters.append(f"MPI_Fint* {a.name}")
        if a.c.dir == "out":
            null = f"MPI_{a.c.type.removeprefix('MPI_').upper()}_NULL"
            self.before.append(f"{a.c.type} c_{a.name} = {null};")
            self.success.append(f"*{a.name} = hf_to_{a.short}(c_{a.name});")
        else:
            self.before.append(f"{a.c.type} c_{a.name} = hf_from_{a.short}(*{a.name});")
            self.after.append(f"*{a.name} = hf_to_{a.short}(c_{a.name});")
        self.arguments.append(f"&c_{a.name}")

    def handles(self, a: Argument) -> None:
        self.lists = True
        if a.c.dir == "out":
            self.parameters.append(f"MPI_Fint* {a.name}")
            self.before.append(f"{a.c.type}* c_{a.name} = calloc((size_t)(*{a.c.array} > 0 ? *{a.c.array} : 0) "
                               f"+ 1, sizeof *c_{a.name});")
            self.before.append(f"lists.lists[lists.count++] = c_{a.name};")
            self.success.append(f"for (MPI_Count i = 0; i < *{a.c.array}; ++i) "
                                f"if (c_{a.name}[i]) {a.name}[i] = hf_to_{a.short}(c_{a.name}[i]);")
        else:
            self.parameters.append(f"const MPI_Fint* {a.name}")
            if a.c.array != "*":
                count = f"*{a.c.array}"
            else:
                neighbours = "eighbor_" in self.procedure.name
                whose = SIDES[a.name] if neighbours else "HF_GROUP"
                count = f"hf_members(hf_from_Comm(*comm), {whose})"
                if a.name == "sendtypes" and not neighbours:  # else they mean nothing
                    address = "sendbuf->base" if self.form == "f08ts" else "sendbuf"
                    count = f"hf_which({address}) == HF_IN_PLACE ? 0 : {count}"
            self.before.append(f"{a.c.type}* c_{a.name} = hf_types(&lists, {a.name}, {count});")
        self.conditions.append(f"c_{a.name} ? MPI_SUCCESS : {self.no_memory}")
        self.arguments.append(f"c_{a.name}")

    def status(self, a: Argument) -> None:
        const = "const " if a.const else ""
        self.parameters.append(f"{const}MPI_Fint* {a.name}")
        self.arguments.append(f"hf_status({a.name})")

    statuses = status

    def logical(self, a: Argument) -> None:
        if a.c.depth == 0:
            self.parameters.append(f"const MPI_Fint* {a.name}")
            self.arguments.append(f"hf_is_true(*{a.name})")
            return
        self.parameters.append(f"MPI_Fint* {a.name}")
        self.before.append(f"int c_{a.name} = 0;")
        self.arguments.append(f"&c_{a.name}")
        self.success.append(f"*{a.name} = hf_logical(c_{a.name});")

    def logicals(self, a: Argument) -> None:
        const = "const " if a.const else ""
        self.parameters.append(f"{const}MPI_Fint* {a.name}")  # not 0 is true in C, too
        self.arguments.append(a.name)
        if a.c.dir != "in":
            self.success.append(f"hf_logicals({a.name}, *{a.c.array});")

    def text(self, a: Argument) -> None:
        self.parameters.append(f"const char* {a.name}")
        self.lengths.append(f"size_t {a.name}_length")
        both = int(a.name in STRIPPED)
        self.before += [f"HfText t_{a.name};", f"t_{a.name}.text = t_{a.name}.few;"]
        self.conditions.append(f"hf_text(&t_{a.name}, {a.name}, {a.name}_length, {both}) ? MPI_SUCCESS "
                               f": {self.no_memory}")
        self.arguments.append(f"t_{a.name}.text")
        self.after.append(f"hf_text_end(&t_{a.name});")

    def result(self, a: Argument) -> None:
        self.parameters.append(f"char* {a.name}")
        self.lengths.append(f"size_t {a.name}_length")
        self.before.append(f"char t_{a.name}[{RESULTS[a.name]} + 1] = \"\";")
        self.arguments.append(f"t_{a.name}")
        self.success.append(f"hf_put_text({a.name}, {a.name}_length, t_{a.name});")

    def weights(self, a: Argument) -> None:
        self.parameters.append(f"{'const ' if a.const else ''}int* {a.name}")
        self.arguments.append(f"hf_weights({a.name})")

    def pointer(self, a: Argument) -> None:
        self.parameters.append(f"void* {a.name}")
        self.arguments.append(a.name)

    def detached(self, a: Argument) -> None:
        self.parameters.append(f"void* {a.name}")
        if self.form == "old":  # its choice buffer has the wrong type for an address: never written
            self.before += [f"void* c_{a.name} = NULL;", f"(void){a.name};"]
        else:
            self.before.append(f"void* c_{a.name} = NULL;")
            self.success.append(f"*(void**){a.name} = c_{a.name} == MPI_BUFFER_AUTOMATIC "
                                f"? hf_program_place(HF_BUFFER_AUTOMATIC) : c_{a.name};")
        self.arguments.append(f"&c_{a.name}")

    def buffer(self, a: Argument) -> None:
        if self.form != "f08ts":
            self.parameters.append(f"{'const ' if a.const else ''}void* {a.name}")
            self.arguments.append(f"hf_place({a.name})")
            return
        self.parameters.append(f"const HfDescriptor* {a.name}")
        if a.how == "base":
            self.arguments.append(f"hf_place({a.name}->base)")
            return
        at = f"b_{a.name}"
        self.before.append(f"HfBuffer {at} = {{.more = NULL}};")
        self.buffers.append(at)
        if a.how == "whole":
            self.conditions.append(f"hf_whole(&{at}, {a.name}, {self.call}, {self.on})")
        elif a.how == "operand":
            self.conditions.append(f"hf_operand(&{at}, {a.name}, *{a.count}, hf_from_Type(*{a.type}), "
                                   f"{self.how(a)}, {self.call}, {self.on})")
        elif a.how == "spread":
            self.conditions.append(f"hf_spread(&{at}, {a.name}, {self.how(a)} | HF_SPREAD, {self.call}, "
                                   f"{self.on})")
        else:
            self.conditions.append(f"hf_section(&{at}, {a.name}, *{a.count}, hf_from_Type(*{a.type}), "
                                   f"{self.how(a)}, {self.call}, {self.on})")
        self.arguments.append(f"{at}.address")

    def how(self, a: Argument) -> str:
        way = {"in": "HF_IN", "out": "HF_OUT", "inout": "HF_IN | HF_OUT"}[a.c.dir]
        p = self.procedure
        one_sided = any(other.c.type == "MPI_Win" for other in p.arguments) and not p.request
        # Nobody would be there when the data has come or gone.
        return way if one_sided or p.name.removesuffix("_c").endswith("_begin") else f"{way} | HF_COPIED"

    # ---- as a text

    def told_by_section(self) -> list[str]:
        """The call's arguments, with counts and datatypes as the sections have them."""
        arguments = list(self.arguments)
        if self.form != "f08ts":
            return arguments
        order = [a.name for a in self.procedure.arguments]
        for a in self.procedure.of("buffer"):
            if a.how == "section":
                count = next(o for o in self.procedure.arguments if o.name == a.count)
                arguments[order.index(a.count)] = f"({count.c.type})b_{a.name}.count"
                arguments[order.index(a.type)] = f"b_{a.name}.type"
        return arguments

    def end(self) -> list[str]:
        p, request = self.procedure, self.procedure.request
        lists = "&lists" if self.lists else "NULL"
        if request and (self.buffers or self.lists):
            buffers = "NULL"
            if self.buffers:
                buffers = f"(HfBuffer* const[]){{{', '.join('&' + buffer for buffer in self.buffers)}}}"
            when = "HF_EACH_START" if p.persistent else "HF_ONCE"
            attach = f"hf_attach(c_{request.name}, code, {when}, {buffers}, {len(self.buffers)}, {lists});"
            if self.lists:
                return [attach]
            return [f"if ({' || '.join(b + '.more' for b in self.buffers)}) {attach}",
                    f"else hf_new(c_{request.name}, code);"]
        if request and p.name != "MPI_Request_free":
            return [f"hf_new(c_{request.name}, code);"]
        ends = [f"hf_close(&{buffer});" for buffer in self.buffers]
        return ends + (["hf_end_lists(&lists);"] if self.lists else [])

    def make(self) -> str:
        p = self.procedure
        macro = {"all": "HF_ENTRY", "old": "HF_ENTRY_OLD", "f08": "HF_ENTRY_F08",
                 "f08ts": "HF_ENTRY_F08TS"}[self.form]
        head = f"{macro}({p.lower}, " if self.form == "f08ts" else f"{macro}(void, {p.lower}, {p.upper}, "
        lines = [f"{head}({', '.join([*self.parameters, 'int* ierror', *self.lengths])})) {{"]
        body = ["HF_NOTE_SITE();"]
        body += ["HfLists lists = {.count = 0, .pending = NULL};"] if self.lists else []
        body += self.before
        # Their forms with _c are the same call, and libraries that follow the standard's text do not have them: bound at
        # once (-z now), we could not be loaded beside one.
        called = p.c_name.removesuffix("_c") if p.name.removesuffix("_c") in PARTITIONED else p.c_name
        call = f"C({called})({', '.join(self.told_by_section())})"
        if self.conditions:
            body.append(f"int code = {self.conditions[0]};")
            body += [f"if (code == MPI_SUCCESS) code = {condition};" for condition in self.conditions[1:]]
            body.append(f"if (code == MPI_SUCCESS) code = {call};")
        else:
            body.append(f"const int code = {call};")
        if self.success:
            body.append("if (code == MPI_SUCCESS) {")
            body += [f"  {line}" for line in self.success]
            body.append("}")
        body += self.after + self.end() + ["hf_give(ierror, code);"]
        return "\n".join(lines + [f"  {line}" for line in body] + ["}", ""])


# The second name of these in the mpi module, where an address comes out as a TYPE(C_PTR).
CPTR = """HF_ALIAS(HF_LOWER({lower}, _cptr_), HF_LOWER({lower}, _));
HF_SPELLINGS({lower}, {upper}, _cptr, _CPTR);
"""


def forms_of(procedure: Procedure) -> list[str]:
    """Where there are buffers, mpi_f08 has one with their addresses as well, for compilers without
    sections."""
    sections = ["f08ts"] if procedure.has_choice and procedure.in_f08 else []
    if not procedure.in_old:
        return ["f08", *sections]
    if procedure.of("detached"):
        return ["old", "f08"]
    return [("all" if procedure.in_f08 else "old"), *sections]


def make_entries(procedures: list[Procedure], notice: str) -> dict[str, str]:
    """By the name of the file."""
    parts = {"entries_plain.c": ("Entries without buffers: one for all forms.", []),
             "entries_addresses.c": ("Entries with buffers as the old forms have them: addresses.", []),
             "entries_sections.c": ("Entries with buffers as mpi_f08 has them: descriptors.", [])}
    for procedure in procedures:
        if procedure.by_hand:
            continue
        for form in forms_of(procedure):
            file = "entries_sections.c" if form == "f08ts" else \
                "entries_addresses.c" if procedure.has_choice else "entries_plain.c"
            text = Entry(procedure, form).make()
            if procedure.of("pointer") and form in ("all", "old"):
                text += CPTR.format(lower=procedure.lower, upper=procedure.upper)
            parts[file][1].append(text)
    return {file: HEAD.format(what=what, notice=notice) + "\n" + "\n".join(texts)
            for file, (what, texts) in parts.items()}
