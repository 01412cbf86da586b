#!/usr/bin/env python3
"""The generator's reading of src/api and of the rows of entries: which stubs disappear, what becomes of
a row, what it refuses, when it rewrites.

usage: generator_test.py REPOSITORY
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
sys.path.insert(0, str(ROOT / "abi"))
sys.dont_write_bytecode = True
from kinds import Kinds, read_kinds  # noqa: E402
STUB = re.compile(r"HEADWAY_ENTRY(?:_R)?\((?:[^,()]*, )?(\w+)\)")


class Generator(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = Path(self.folder.name)
        self.api = self.out / "api"
        (self.api / "detail").mkdir(parents=True)

    def generate(self):
        return subprocess.run(
            [sys.executable, ROOT / "abi/generate.py", "--entries", self.out / "entries.json",
             "--api", self.api, "--include", self.out / "i", "--generated", self.out / "g"],
            capture_output=True, text=True,
        )

    def rows(self, *rows: dict) -> None:
        (self.out / "entries.json").write_text(json.dumps(rows))

    def entries(self, *rows: dict) -> str:
        """What those rows of the file a.cc become, blanks and line ends as one blank."""
        self.rows(*({"in": "a"} | row for row in rows))
        (self.api / "a.cc").write_text('#include "api/entries/a.inl"\n')
        result = self.generate()
        self.assertEqual(result.returncode, 0, result.stderr)
        return " ".join((self.out / "g/api/entries/a.inl").read_text().split())

    def refusal(self, *rows: dict) -> str:
        self.rows(*rows)
        result = self.generate()
        self.assertNotEqual(result.returncode, 0)
        return result.stderr

    def unsupported(self) -> str:
        result = self.generate()
        self.assertEqual(result.returncode, 0, result.stderr)
        return (self.out / "g/unsupported_entries.cc").read_text()

    def stubs(self) -> set[str]:
        return set(STUB.findall(self.unsupported()))

    def test_every_function_has_a_stub_at_first(self):
        names = {f["name"] for f in json.loads((ROOT / "abi/mpi-5.0-abi.json").read_text())["functions"]}
        self.assertEqual(self.stubs(), names)
        self.assertEqual(len(names), 664)

    def test_a_body_replaces_its_stub(self):
        before = self.stubs()
        (self.api / "a.cc").write_text("HEADWAY_ENTRY(MPI_Send)(const void* buf) { return 0; }\n")
        (self.api / "detail/b.cc").write_text(
            "HEADWAY_ENTRY_R(double, MPI_Wtime)() { return 0; }\nHEADWAY_ENTRY( MPI_Recv )();\n"
        )
        self.assertEqual(before - self.stubs(), {"MPI_Send", "MPI_Wtime", "MPI_Recv"})

    def test_the_list_of_functions_says_which_have_a_body(self):
        (self.api / "a.cc").write_text("HEADWAY_ENTRY(MPI_Send)(const void* buf) { return 0; }\n")
        self.stubs()
        text = (self.out / "g/settings/abi_functions.h").read_text()
        rows = re.findall(r'{"(\w+)", (true|false)}', text)
        self.assertEqual(len(rows), 664)
        self.assertEqual([name for name, there in rows if there == "true"], ["MPI_Send"])
        self.assertEqual([name for name, _ in rows], sorted(name for name, _ in rows))

    def test_a_row_is_an_entry_and_its_twin(self):
        text = self.entries({"family": "MPI_Recv", "body": "receive", "site": True})
        self.assertEqual(text.count("HEADWAY_ENTRY"), 2)
        self.assertIn('HEADWAY_ENTRY(MPI_Recv)(void *buf, int count, MPI_Datatype datatype, int source, '
                      'int tag, MPI_Comm comm, MPI_Status *status) { note_site(); return '
                      'receive("MPI_Recv", buf, count, datatype, source, tag, comm, status); }', text)
        self.assertIn('HEADWAY_ENTRY(MPI_Recv_c)(void *buf, MPI_Count count, ', text)
        self.assertIn('return receive("MPI_Recv_c", buf, ', text)

    def test_a_row_takes_its_stubs_away(self):
        before = self.stubs()
        self.entries({"family": "MPI_Recv", "body": "receive"}, {"of": "MPI_Wtime", "body": "now"})
        self.assertEqual(before - self.stubs(), {"MPI_Recv", "MPI_Recv_c", "MPI_Wtime"})

    def test_what_is_there_is_counted(self):
        self.entries({"family": "MPI_Bcast", "body": "b", "ends": ["wait", "request"]})
        with (self.api / "a.cc").open("a") as file:
            file.write("HEADWAY_ENTRY(MPI_Pcontrol)(const int, ...) { return 0; }\n")
        command = [sys.executable, ROOT / "abi/generate.py", "--count", "--api", self.api,
                   "--entries", self.out / "entries.json"]
        self.assertEqual(subprocess.run(command, capture_output=True, text=True).stdout,
                         "entries: 664 functions of the ABI: 4 in 1 rows, 1 by hand, 659 not there yet\n")

    def test_a_collective_ends_in_three_ways(self):
        text = self.entries({"family": "MPI_Bcast", "body": "bcast",
                             "ends": ["wait", "request", "persistent"]})
        names = ("Bcast", "Ibcast", "Bcast_init")
        ways = ("Way{}", "Way{request}", "Way{request, info}")
        for name, way in zip(names, ways):
            for twin in ("", "_c"):
                self.assertIn(f'return bcast("MPI_{name}{twin}", buffer, count, datatype, root, comm, '
                              f'{way});', text)
        self.assertEqual(text.count("HEADWAY_ENTRY"), 6)

    def test_a_row_has_arguments_of_its_own(self):
        text = self.entries({"of": ["MPI_Get_count"], "body": "narrow",
                             "args": ["status", "datatype", "false", "count"]},
                            {"family": "MPI_Comm_fromint", "body": "made<{returns}>"})
        self.assertIn('return narrow("MPI_Get_count", status, datatype, false, count);', text)
        self.assertNotIn("MPI_Get_count_c", text)
        self.assertIn("HEADWAY_ENTRY_R(MPI_Comm, MPI_Comm_fromint)(int comm) "
                      '{ return made<MPI_Comm>("MPI_Comm_fromint", comm); }', text)

    def test_an_entry_refuses_null_pointers_that_its_kinds_do_not_allow(self):
        text = self.entries({"family": ["MPI_Isend", "MPI_Recv", "MPI_Test", "MPI_Group_incl",
                                        "MPI_Info_create", "MPI_Comm_get_name", "MPI_Alltoallw",
                                        "MPI_T_cvar_get_num", "MPI_Comm_create_keyval",
                                        "MPI_Info_get_string", "MPI_Session_init"], "body": "x"})
        refused = {name: re.findall(r"if \(([^)]*)\) \[\[unlikely", entry) for name, entry in
                   re.findall(r"HEADWAY_ENTRY\((\w+)\)(.*?return x)", text)}
        self.assertEqual(refused["MPI_Isend"], ["!request"])  # the body looks at the buffer
        self.assertEqual(refused["MPI_Recv"], [])  # MPI_STATUS_IGNORE
        self.assertEqual(refused["MPI_Test"], ["!request", "!flag"])
        self.assertEqual(refused["MPI_Group_incl"], ["n > 0 && !ranks", "!newgroup"])
        self.assertEqual(refused["MPI_Comm_get_name"], ["!comm_name", "!resultlen"])
        self.assertEqual(refused["MPI_Alltoallw"], [])  # the group tells how long they are
        self.assertEqual(refused["MPI_T_cvar_get_num"], [])  # has codes of its own
        self.assertEqual(refused["MPI_Comm_create_keyval"], ["!comm_keyval"])  # no function is one
        self.assertEqual(refused["MPI_Info_get_string"], ["!buflen", "*buflen > 0 && !value", "!flag"])
        self.assertIn('.story = {.call = "MPI_Session_init"}, .errhandler = errhandler, .any_time', text)
        self.assertIn('raise_missing({.argument = "request", .story = {.call = "MPI_Isend", '
                      '.peer = dest, .tag = tag, .count = count}, .comm = comm, '
                      '.datatype = datatype});', text)
        self.assertIn('{.argument = "info", .story = {.call = "MPI_Info_create"}, .any_time = true}', text)

    def test_rows_that_cannot_be_are_refused(self):
        row = {"in": "a", "family": "MPI_Recv", "body": "receive"}
        (self.api / "a.cc").write_text('#include "api/entries/a.inl"\n')
        self.rows(row)
        self.assertEqual(self.generate().returncode, 0)
        for change, story in (
            ({"family": "MPI_Receive"}, "MPI_Receive is not a function of the ABI"),
            ({"boddy": "x"}, "no key boddy"),
            ({"of": "MPI_Send"}, "one of family and of"),
            ({"ends": ["wait", "never"]}, "no call ends by never"),
            ({"family": "MPI_Type_size", "ends": ["persistent"]},
             "MPI_Type_size_init is not a function of the ABI"),
            ({"family": "MPI_Send", "ends": ["persistent"]}, "MPI_Send_init does not end with info"),
            ({"in": "b"}, "b.cc does not include api/entries/b.inl"),
        ):
            with self.subTest(story):
                self.assertIn(story, self.refusal(row | change))
        self.assertIn("stands in two rows", self.refusal(row, row))
        (self.api / "a.cc").write_text('HEADWAY_ENTRY(MPI_Recv)() {}\n#include "api/entries/a.inl"\n')
        self.assertIn("already defined in entries.json", self.refusal(row))
        (self.api / "a.cc").write_text('#include "api/entries/b.inl"\n')
        self.assertIn("entries that are not its own", self.refusal(row))

    def test_comments_and_tests_define_nothing(self):
        before = self.stubs()
        (self.api / "a.cc").write_text("// HEADWAY_ENTRY(MPI_Send)\n/* HEADWAY_ENTRY(MPI_Recv)\n */\n")
        (self.api / "a_test.cc").write_text("HEADWAY_ENTRY(MPI_Ssend)() {}\n")
        self.assertEqual(self.stubs(), before)

    def test_unknown_and_double_names_are_refused(self):
        (self.api / "a.cc").write_text("HEADWAY_ENTRY(MPI_Sendd)() {}\n")
        result = self.generate()
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("MPI_Sendd", result.stderr)
        (self.api / "a.cc").write_text("HEADWAY_ENTRY(MPI_Send)() {}\n")
        (self.api / "b.cc").write_text("HEADWAY_ENTRY(MPI_Send)() {}\n")
        result = self.generate()
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("already defined", result.stderr)

    def test_the_fallback_leaves_when_the_real_one_comes(self):
        self.assertIn("int headway::api::unsupported", self.unsupported())
        (self.api / "e.cc").write_text("int unsupported(const char* function) { return raise(); }\n")
        self.assertNotIn("int headway::api::unsupported", self.unsupported())

    def test_a_second_run_touches_nothing(self):
        self.stubs()
        files = [p for folder in ("i", "g") for p in (self.out / folder).rglob("*") if p.is_file()]
        self.assertEqual(len(files), 5)
        before = {p: p.stat().st_mtime_ns for p in files}
        self.stubs()
        self.assertEqual({p: p.stat().st_mtime_ns for p in files}, before)

    def test_a_stub_looks_at_its_communicator(self):
        text = self.unsupported()
        for name, call in {
            "MPI_Send": '"MPI_Send", comm',
            "MPI_Intercomm_create": '"MPI_Intercomm_create", local_comm',  # the first one
            "MPI_Comm_free": '"MPI_Comm_free"',  # a place for one is none
            "MPI_Wait": '"MPI_Wait"',
        }.items():
            self.assertRegex(text, rf"HEADWAY_ENTRY\({name}\)[^\n]* return unsupported\({call}\);")

    def test_results_of_other_types(self):
        text = self.unsupported()
        self.assertIn("HEADWAY_ENTRY_R(double, MPI_Wtime)", text)
        self.assertRegex(text, r"HEADWAY_ENTRY_R\(MPI_Comm, MPI_Comm_fromint\)[^}]*return MPI_COMM_NULL;")
        self.assertRegex(
            text, r"HEADWAY_ENTRY_R\(MPI_Datatype, MPI_Type_fromint\)[^}]*return MPI_DATATYPE_NULL;"
        )


class OfParameters(unittest.TestCase):
    def setUp(self):
        self.abi = json.loads((ROOT / "abi/mpi-5.0-abi.json").read_text())

    def test_kinds_of_the_table(self):
        kinds = read_kinds(ROOT / "abi/kinds.json", self.abi)
        self.assertEqual(kinds.problems, [])
        for place, wanted in {
            "MPI_Send.buf": ("buffer", "in", ""), "MPI_Send.count": ("count", "in", ""),
            "MPI_Send.dest": ("rank", "in", ""), "MPI_Recv.buf": ("buffer", "out", ""),
            "MPI_Recv.status": ("status", "out", ""), "MPI_Wait.request": ("handle", "inout", ""),
            "MPI_Waitsome.array_of_requests": ("handle", "inout", "incount"),
            "MPI_Gatherv.displs": ("displacement", "in", "*"),
            "MPI_Gatherv_c.displs": ("displacement", "in", "*"),
            "MPI_Cart_create.periods": ("logical", "in", "ndims"),
            "MPI_Comm_create_keyval.extra_state": ("state", "in", ""),
            "MPI_Type_vector.stride": ("count", "in", ""),
            "MPI_File_seek.offset": ("offset", "in", ""),
            "MPI_Get_address.location": ("buffer", "in", ""),
        }.items():
            function, name = place.split(".")
            found, = (one for one in kinds.parameters[function] if one.name == name)
            self.assertEqual((found.kind, found.dir, found.array), wanted, place)

    def test_what_cannot_be_is_told(self):
        for rows, story in (
            ({"functions": {"MPI_Send": {"bufff": {"kind": "buffer"}}}}, "MPI_Send has no parameter bufff"),
            ({"functions": {"MPI_Sendd": {"buf": {}}}}, "MPI_Sendd has no parameter buf"),
            ({"functions": {"MPI_Send": {"buf": {"kind": "bufer"}}}}, "buf cannot be"),
            ({"names": {"dest": {"rank": True}}}, "dest cannot be"),
            ({"names": {"ranks": {"array": "many"}}}, "has no many, the length of ranks"),
            ({"before_init": ["MPI_Sendd*"]}, "no function is called MPI_Sendd*"),
        ):
            with self.subTest(story):
                self.assertIn(story, "\n".join(Kinds(rows, self.abi).problems))


if __name__ == "__main__":
    unittest.main(verbosity=2)
