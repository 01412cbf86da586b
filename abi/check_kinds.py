#!/usr/bin/env python3
"""Compares kinds.json with the parameters of pympistandard, the MPI Forum's own list of the
bindings, by hand after a change of either; no build needs it.

usage: check_kinds.py SOURCE   SOURCE: where the wheel was unpacked, or pip installed it to:
                               pip install --no-deps --target SOURCE pympistandard

Kinds, directions and lengths of lists are facts of the standard, which both must have alike. Its
kinds are finer than ours: TABLE tells which of ours is meant. KNOWN is where we differ and why.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kinds import Parameter, read_kinds

HERE = Path(__file__).resolve().parent
TABLE = {
    "handle": "COMMUNICATOR DATATYPE ERRHANDLER EVENT_INSTANCE EVENT_REGISTRATION FILE GROUP INFO "
              "MESSAGE OPERATION PVAR PVAR_SESSION CVAR REQUEST SESSION TOOLS_ENUM WINDOW",
    "status": "STATUS",
    "function": "FUNCTION POLYFUNCTION EVENT_CB_FUNCTION EVENT_DROP_CB_FUNCTION EVENT_FREE_CB_FUNCTION",
    "state": "EXTRA_STATE EXTRA_STATE2",
    "buffer": "BUFFER C_BUFFER LOGICAL_VOID TOOL_MPI_OBJ",
    "string": "STRING STRING_ARRAY STRING_2DARRAY ARGUMENT_LIST",
    "address": "ATTRIBUTE_VAL ATTRIBUTE_VAL_10 C_BUFFER2 LOCATION_SMALL",
    "count": "POLYXFER_NUM_ELEM POLYXFER_NUM_ELEM_NNI POLYDTYPE_NUM_ELEM POLYDTYPE_NUM_ELEM_NNI "
             "POLYDTYPE_NUM_ELEM_PI XFER_NUM_ELEM XFER_NUM_ELEM_NNI NUM_BYTES POLYNUM_BYTES "
             "POLYNUM_BYTES_NNI POLYNUM_PARAM_VALUES POLYDTYPE_PACK_SIZE ALLOC_MEM_NUM_BYTES "
             "ARRAY_LENGTH ARRAY_LENGTH_NNI ARRAY_LENGTH_PI DEGREE GENERIC_DTYPE_COUNT NUM_DIMS "
             "TOOLS_NUM_ELEM_SMALL WINDOW_SIZE WIN_ATTACH_SIZE",
    "displacement": "POLYDISPLACEMENT POLYDISPLACEMENT_AINT_COUNT POLYDISPLACEMENT_COUNT "
                    "POLYDTYPE_STRIDE_BYTES POLYLOCATION POLYRMA_DISPLACEMENT RMA_DISPLACEMENT_NNI "
                    "DISPLACEMENT DISPLACEMENT_NNI POLYDISPOFFSET",
    "offset": "OFFSET",
    "rank": "RANK RANK_NNI",
    "tag": "TAG",
    "keyval": "KEYVAL",
    "index": "INDEX CAT_INDEX CVAR_INDEX CVAR_INDEX_SPECIAL EVENT_INDEX PVAR_INDEX SOURCE_INDEX "
             "TOOLENUM_INDEX",
    "logical": "LOGICAL LOGICAL_OPTIONAL",
}
MEANT = {theirs: ours for ours, names in TABLE.items() for theirs in names.split()}
# (function, parameter) or parameter: why we say something else.
NUMBER = "theirs calls a number of indices an index"
EXTENT = "theirs are counts, as those of MPI_Type_get_extent are not"
KNOWN: dict[tuple[str, str] | str, str] = {
    "baseptr": "the address of memory goes out, no data",
    ("MPI_Precv_init", "buf"): "what is received goes out",
    ("MPI_Type_get_extent_x", "lb"): EXTENT,
    ("MPI_Type_get_extent_x", "extent"): EXTENT,
    ("MPI_Type_get_true_extent_x", "true_lb"): EXTENT,
    ("MPI_Type_get_true_extent_x", "true_extent"): EXTENT,
    **dict.fromkeys(("num_cat", "num_categories", "num_cvar", "num_cvars", "num_events", "num_pvar",
                     "num_pvars", "num_sources"), NUMBER),
}


def direction(row: dict) -> str:
    return row["param_direction"]


def length(row: dict) -> str:
    value = row["length"]
    if isinstance(value, list):
        value = value[0]
    return "" if value is None or row["kind"].startswith("STRING") else str(value)


def differences(ours: Parameter, row: dict) -> list[str]:
    kind = MEANT.get(row["kind"], "integer")
    found = []
    if ours.kind != kind:
        found.append(f"kind {ours.kind}, there {kind} ({row['kind']})")
    if ours.dir != direction(row):
        found.append(f"dir {ours.dir}, there {direction(row)}")
    if ours.depth and ours.kind != "string" and ours.array != length(row):
        found.append(f"array {ours.array!r}, there {length(row)!r}")
    return found


def main() -> int:
    abi = json.loads((HERE / "mpi-5.0-abi.json").read_text())
    kinds = read_kinds(HERE / "kinds.json", abi)
    data = next(Path(sys.argv[1]).rglob("pympistandard/data/apis.json"))
    theirs = {row["name"]: row for row in json.loads(data.read_text()).values()}
    compared = differing = 0
    for name, parameters in kinds.parameters.items():
        large = name.endswith("_c")
        source = theirs.get(kinds.base(name))
        if source is None:
            print(f"{name} is not in {data}")
            continue
        rows = [row for row in source["parameters"]
                if "c_parameter" not in row["suppress"] and (large or not row["large_only"])
                and row["kind"] != "VARARGS"]
        if len(rows) != len(parameters):
            print(f"{name} has {len(parameters)} parameters, there {len(rows)}")
            differing += 1
            continue
        for parameter, row in zip(parameters, rows):
            compared += 1
            found = differences(parameter, row)
            if found and not {parameter.name, (kinds.base(name), parameter.name)} & KNOWN.keys():
                differing += 1
                print(f"{name}.{parameter.name}: {'; '.join(found)}")
    print(f"{compared} parameters compared, {differing} differ")
    return 1 if differing or kinds.problems else 0


if __name__ == "__main__":
    sys.exit(main())
