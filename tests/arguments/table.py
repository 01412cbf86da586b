"""Every function of the ABI with every argument made wrong in turn: null pointers, and the numbers at
the ends of their types. A row is a call that is right and what becomes of it; generate.py writes the
calls as C, run.py judges what they return."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re

# Ends MPI, takes what no table has, or is no call of a program.
LEFT_OUT = {"MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Abort", "MPI_Pcontrol"}
HANDLES = {"MPI_Comm": "comm", "MPI_Datatype": "datatype", "MPI_Op": "op", "MPI_Group": "group",
           "MPI_Request": "request", "MPI_Info": "info", "MPI_Errhandler": "errhandler",
           "MPI_Message": "message", "MPI_Win": "window", "MPI_File": "file",
           "MPI_Session": "session"}
NUMBERS = {"int": ("INT_MIN", "INT_MAX"), **dict.fromkeys(
    ("MPI_Count", "MPI_Aint", "MPI_Offset"), ("INT64_MIN", "INT64_MAX"))}
# Right values of numbers, by the parameter's name; 1 for all others.
VALUES = {
    "dest": "MPI_PROC_NULL", "source": "MPI_PROC_NULL", "root": "0", "rank": "0", "color": "0",
    "key": "0", "direction": "0", "split_type": "MPI_COMM_TYPE_SHARED", "order": "MPI_ORDER_C",
    "errorclass": "MPI_ERR_ARG", "errorcode": "MPI_ERR_ARG", "p": "6", "r": "8", "typeclass":
    "MPI_TYPECLASS_INTEGER", "logical_size": "4", "insize": "64", "outsize": "64", "valuelen": "63",
    "max_integers": "16", "max_addresses": "16", "max_datatypes": "16", "max_large_counts": "16",
    "extent": "8", "stride": "16", "lb": "0", "argc": "0", "cat_index": "0", "cvar_index": "0",
    "pvar_index": "0", "event_index": "0", "indx": "0", "local_leader": "0", "remote_leader": "0",
    "target_rank": "0", "target_disp": "0", "assert": "0", "lock_type": "MPI_LOCK_SHARED",
    "amode": "MPI_MODE_CREATE | MPI_MODE_RDWR", "whence": "MPI_SEEK_SET", "disp": "0",
}
# The epoch that a call on a window wants (main.c, window()); none for all others.
EPOCHS = [(r"R?(Put|Get|Accumulate|Get_accumulate|accumulate|Fetch_and_op|Compare_and_swap)", "all"),
          (r"R(put|get|get_accumulate)", "all"), (r"Win_(unlock|flush|flush_local)", "locked"),
          (r"Win_(unlock_all|flush_all|flush_local_all)", "all"), (r"Win_start", "posted"),
          (r"Win_complete", "started"), (r"Win_(wait|test)", "completed"),
          (r"Win_(attach|detach)", "dynamic")]
# The same for what a list or a variable holds before the call.
ITEMS = {
    "displs": "0", "sdispls": "0", "rdispls": "0", "position": "0", "periods": "0", "coords": "0",
    "ranks": "0", "ranks1": "0", "array_of_starts": "0", "array_of_displacements": "0",
    "edges": "0", "sources": "0", "destinations": "0",
    "buflen": "64", "pset_len": "64", "array_of_distribs": "MPI_DISTRIBUTE_BLOCK",
    "array_of_dargs": "MPI_DISTRIBUTE_DFLT_DARG",
}
TEXTS = {"datarep": '"external32"', "pset_name": '"mpi://SELF"', "key": '"color"',
         "value": '"blue"', "stringtag": '"tag"', "filename": "file_name"}
# A null pointer is a right argument there.
MAY_BE_NULL = re.compile(
    r"\.(extra_state|location|obj_handle|argv|argc|copy_fn|delete_fn|\w+_attr_fn|query_fn|free_fn"
    r"|cancel_fn|(read|write)_conversion_fn)$|^MPI_File_\w+_end\.buf$"
    r"|(set_attr|Attr_put)\.attribute_val$|Free_mem\.base$|xscan(_init)?(_c)?\.recvbuf$"
    r"|Comm_remote_\w+\.|get_contents_c\.array_of_large_counts$"
    r"|^MPI_Comm_spawn(_multiple)?\.array_of_(argv|errcodes)$"
    r"|^MPI_T_(enum_get|\w+_get_info)\w*\.|^MPI_T_pvar_(read|readreset|write)|^MPI_T_cvar_write"
    r"|^MPI_T_\w+_get_(cvars|pvars|events|categories)\.")
COUNTED = {"count", "sendcount", "recvcount", "incount", "outcount", "origin_count", "target_count", "result_count"}
MOVES = re.compile(r"^MPI_(?!Type_|Status_|Get_(?!accumulate|c$)|T_|\w*_size(_c)?$)")


@dataclasses.dataclass(frozen=True)
class Case:
    function: str
    argument: str  # "" for the call that is right
    value: str
    code: str = ""  # C that makes it so
    wanted: str = "any"  # "right", "null" (an error that names the argument), "error"


@dataclasses.dataclass(frozen=True)
class Parameter:
    type: str
    name: str
    depth: int  # pointers and lists
    is_input: bool
    text: str


@dataclasses.dataclass
class Function:
    name: str
    returns: str
    parameters: list[Parameter]
    cases: list[Case] = dataclasses.field(default_factory=list)


def parse(text: str) -> Parameter:
    found = re.fullmatch(r"(const )?((?:unsigned )?\w+) ?(\**)(?:const )?(\w+)((?:\[\d*\])*)", text)
    if not found:
        raise ValueError(text)
    const, kind, stars, name, lists = found.groups()
    return Parameter(kind, name, len(stars) + lists.count("["), bool(const or lists), text)


def handle_for(function: str, kind: str) -> str:
    """The field of the fixtures that is right for that call."""
    if kind == "MPI_Comm" and re.search(r"Cart(dim)?_(?!create|map)", function):
        return "cart"
    if kind == "MPI_Comm" and re.search(r"_Graph(dims)?_(?!create|map)", function):
        return "graph"
    if kind == "MPI_Comm" and re.search(r"Dist_graph_neighbors|eighbor_all", function):
        return "edges"
    if kind == "MPI_Datatype" and re.search(r"get_contents|Type_free$|Type_commit$", function):
        return "derived"
    if function == "MPI_Op_free":
        return "own_op"
    if kind == "MPI_Request" and re.search(r"_Start|Request_free", function):
        return "persistent"
    if kind == "MPI_Request" and re.search(r"_Pready|_Parrived", function):
        return "parts_out" if "_Pready" in function else "parts_in"
    return HANDLES[kind]


def epoch_for(function: str) -> str:
    return next((epoch for calls, epoch in EPOCHS
                 if re.fullmatch(rf"MPI_{calls}(_c)?", function)), "none")


def keyval_for(function: str) -> str:
    kind = re.match(r"MPI_(Type|Win)_", function)
    return f"f.{kind[1].lower()}_keyval" if kind else "f.keyval"


class Writer:
    """The cases of one function."""

    def __init__(self, function: Function):
        self.function = function
        self.declarations: list[str] = []

    def add(self, argument: str, value: str, code: str, wanted: str = "any") -> None:
        self.function.cases.append(Case(self.function.name, argument, value, code, wanted))

    def null(self, parameter: Parameter) -> None:
        name = f"{self.function.name}.{parameter.name}"
        free = MAY_BE_NULL.search(name) or (
            parameter.type == "MPI_Status" and not re.match(r"MPI_(Status_|Get_|Test_c)", name))
        self.add(parameter.name, "NULL", f"{parameter.name} = NULL;", "any" if free else "null")

    def number(self, parameter: Parameter) -> None:
        name, kind = parameter.name, parameter.type
        low, high = NUMBERS[kind]
        value = VALUES.get(name, "1")
        if "keyval" in name:
            value = keyval_for(self.function.name)
        if self.function.name == "MPI_Type_match_size" and name == "size":
            value = "4"
        if "error" in name and re.search("Remove|string", self.function.name):
            value = "f.error_class" if "class" in name else "f.error_code"
        if self.function.name == "MPI_Info_get_nthkey":
            value = "0"
        self.declarations.append(f"{kind} {name} = {value};")
        counts = "count" in name or name in ("n", "ndims", "nnodes")
        if name != "source":  # any source, for which a receive waits
            self.add(name, "-1", f"{name} = -1;")
        self.add(name, "MIN", f"{name} = {low};", "error" if name in COUNTED else "any")
        if not counts:
            self.add(name, "MAX", f"{name} = {high};")
        elif name in COUNTED and kind == "MPI_Count" and MOVES.match(self.function.name):
            # With MPI_INT the second one's bytes are 0 in 64 bits.
            self.add(name, "MAX", f"{name} = {high};", "error")
            self.add(name, "2^62", f"{name} = INT64_C(1) << 62;", "error")
        elif kind == "MPI_Count" and re.search("contiguous|vector|_size", self.function.name):
            self.add(name, "MAX", f"{name} = {high};")

    def numbers(self, parameter: Parameter) -> None:
        name, kind = parameter.name, parameter.type
        item = keyval_for(self.function.name) if "keyval" in name else ITEMS.get(name, "1")
        self.declarations.append(
            f"{kind}* {name} = list(sizeof *{name}); FILL({name}, {item});")
        self.null(parameter)
        if not parameter.is_input and name not in ("position", "buflen", "pset_len"):
            return
        low, high = NUMBERS[kind]
        moves = MOVES.match(self.function.name)
        places, lengths = moves and "displs" in name, moves and name.endswith("counts")
        self.add(name, "all -1", f"FILL({name}, -1);", "error" if lengths else "any")
        wide = "".join(f" {p.name} = f.wide;" for p in self.function.parameters
                       if p.type == "MPI_Datatype" and p.depth == 0) if places else ""
        if places and not wide and kind == "int":
            return  # bytes that the address space has
        wanted = "error" if places or lengths else "any"
        self.add(name, "all MIN", f"FILL({name}, {low});{wide}", wanted)
        # An item of these says how many another list has, and no list has so many.
        if not (lengths and kind == "int") and name not in ("indx", "degrees"):
            self.add(name, "all MAX", f"FILL({name}, {high});{wide}", wanted)

    def datatype(self, parameter: Parameter) -> None:
        name = parameter.name
        for field in ("low", "backward", "wide"):
            self.add(name, field, f"{name} = f.{field};")
        if not MOVES.match(self.function.name):
            self.add(name, "edge", f"{name} = f.edge;")
            return
        for count in self.function.parameters:
            if count.name in COUNTED and count.depth == 0:
                at = self.function.parameters.index
                if at(parameter) == at(count) + 1:
                    self.add(name, "3 backward", f"{name} = f.backward; {count.name} = 3;", "error")

    def handle(self, parameter: Parameter) -> None:
        right = f"f.{handle_for(self.function.name, parameter.type)}"
        if parameter.type == "MPI_Win":
            self.declarations.append(f"MPI_Win made = window({epoch_for(self.function.name)});")
            right = "made"
        name = parameter.name
        if parameter.depth == 0:
            self.declarations.append(f"{parameter.type} {name} = {right};")
            if parameter.type == "MPI_Datatype":
                self.datatype(parameter)
            return
        self.declarations.append(
            f"{parameter.type}* {name} = list(sizeof *{name}); FILL({name}, {right});")
        self.null(parameter)

    def pointer(self, parameter: Parameter, callbacks: set[str]) -> None:
        name, kind = parameter.name, parameter.type
        if kind == "char" and parameter.depth == 1:
            words = TEXTS.get(name, '"word"')
            self.declarations.append(f"char* {name} = text({words});")
        elif parameter.text.endswith("[][3]"):
            self.declarations.append(f"int (*{name})[3] = make_ranges();")
            for value in ("-1", "INT_MIN", "INT_MAX"):
                for at in range(3):
                    self.add(name, f"[0][{at}] {value}", f"{name}[0][{at}] = {value};")
        elif kind in callbacks:
            self.declarations.append(f"{kind}* {name} = ({kind}*)&callback;")
        elif kind == "void" and parameter.depth == 1:
            memory = "allocated()" if self.function.name == "MPI_Free_mem" else "list(1 << 12)"
            self.declarations.append(f"void* {name} = {memory};")
        else:
            stars = "*" * parameter.depth
            self.declarations.append(f"{kind}{stars} {name} = list(64);")
        self.null(parameter)

    def parameter(self, parameter: Parameter, callbacks: set[str]) -> None:
        if parameter.type in HANDLES and parameter.depth <= 1:
            self.handle(parameter)
        elif parameter.type in NUMBERS and parameter.depth == 0:
            self.number(parameter)
        elif parameter.type in NUMBERS and parameter.depth == 1:
            self.numbers(parameter)
        elif parameter.depth > 0 or parameter.type == "void":
            self.pointer(parameter, callbacks)
        elif parameter.type in callbacks:
            self.declarations.append(f"{parameter.type}* {parameter.name} = ({parameter.type}*)0;")
        else:
            self.declarations.append(f"{parameter.type} {parameter.name} = ({parameter.type})0;")


def read(abi: pathlib.Path) -> tuple[list[Function], dict[str, list[str]]]:
    """The functions with their cases, and the declarations of each."""
    data = json.loads(abi.read_text())
    callbacks = {row["name"] for row in data["callback_types"]}
    functions, declarations = [], {}
    for row in data["functions"]:
        name = row["name"]
        if name in LEFT_OUT or name.startswith("PMPI") or "..." in row["params"]:
            continue
        parameters = [parse(text) for text in row["params"] if text != "void"]
        function = Function(name, row["returns"], parameters)
        writer = Writer(function)
        writer.add("", "right", "", "right")
        for parameter in parameters:
            writer.parameter(parameter, callbacks)
        functions.append(function)
        declarations[name] = writer.declarations
    return functions, declarations
