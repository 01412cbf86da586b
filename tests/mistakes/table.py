"""The commonest mistakes of users of MPI: each a small program or a command, what it must print, and
what to say about it. The page docs/mistakes.md is made of this and of what is really printed."""

from __future__ import annotations

import dataclasses

MPI_ERROR = r"^headway: rank {rank} on \S+: {call} failed: .*Likely remedy: \w.*The job ends"


@dataclasses.dataclass(frozen=True)
class Mistake:
    name: str  # of the program in programs/, too, if there is a source
    title: str
    about: str
    says: tuple[str, ...]  # patterns that the output must have
    code: int
    ranks: int = 2
    options: tuple[str, ...] = ()  # of mpiexec
    environment: tuple[tuple[str, str], ...] = ()
    before: str = ""  # a shell line before it; $DIR is an empty folder
    command: str = ""  # instead of mpiexec -n RANKS OPTIONS ./NAME
    program: str = ""  # whose source is not shown
    path: str = ""  # the search path behind mpiexec's folder, where what lies on the usual one would change the output

    @property
    def line(self) -> str:
        if self.command:
            return self.command
        words = ["mpiexec", "-n", str(self.ranks), *self.options, f"./{self.program or self.name}"]
        return " ".join(words)


@dataclasses.dataclass(frozen=True)
class Section:
    title: str
    mistakes: tuple[Mistake, ...]


def call(rank: int, name: str, *more: str) -> tuple[str, ...]:
    return (MPI_ERROR.format(rank=rank, call=name), *more)


SECTIONS = (
    Section("Arguments", (
        Mistake("wrong_count", "A count that is too large",
                "A product of two lengths overflows an `int`. Where it comes out negative it is seen; "
                "use `MPI_Count` and the functions that end in `_c`.",
                call(1, "MPI_Send", "destination 0, tag 3, count -2147483648, datatype MPI_DOUBLE",
                     "MPI_ERR_COUNT",
                     "ends in _c"), 2),
        Mistake("null_buffer", "An allocation that failed",
                "",
                call(1, "MPI_Send", "null pointer", "destination 0, tag 4, count 1000",
                     "8000 bytes", "MPI_ERR_BUFFER"), 1),
        Mistake("null_result", "A result that is not wanted",
                "Statuses can be left out, with `MPI_STATUS_IGNORE`; every other result needs a place.",
                call(1, "MPI_Isend", "the argument request is a null pointer", "destination 0, tag 3",
                     "MPI_ERR_ARG", "address of a variable"), 13),
        Mistake("bad_rank", "A neighbour that does not exist",
                "`MPI_PROC_NULL` stands for nobody: sends to it and receives from it return at once.",
                call(1, "MPI_Send", "destination 2, tag 3, count 1, datatype MPI_INT, 4 bytes",
                     "MPI_COMM_WORLD of 2 ranks", "MPI_ERR_RANK", "MPI_PROC_NULL"), 6),
        Mistake("bad_tag", "A tag out of range", "",
                call(1, "MPI_Send", "the tag is negative", "tag -1294967295", "MPI_ERR_TAG",
                     "2147483647"), 4),
        Mistake("bad_root", "A root that does not exist",
                "The program wants two ranks and got one.",
                call(0, "MPI_Bcast", "the root 1", "MPI_COMM_WORLD of 1 rank", "MPI_ERR_ROOT",
                     "mpiexec -n"), 8, ranks=1),
        Mistake("uncommitted_type", "A datatype that was not committed", "",
                call(1, "MPI_Send", "not committed", "a derived datatype of 64 bytes",
                     "MPI_ERR_TYPE", "MPI_Type_commit"), 3),
        Mistake("freed_communicator", "A communicator that was freed", "",
                call(1, "MPI_Send", "freed, or never made", "destination 0, tag 2, count 1",
                     "MPI_ERR_COMM",
                     "MPI_Comm_free"), 5),
        Mistake("null_communicator", "A communicator that this rank is not in", "",
                call(1, "MPI_Barrier", "MPI_COMM_NULL", "MPI_ERR_COMM"), 5),
        Mistake("wrong_operation", "An operation that the datatype does not have", "",
                call(1, "MPI_Allreduce", "MPI_BOR is not defined", "MPI_DOUBLE", "MPI_ERR_OP"), 10),
        Mistake("char_sum", "A sum of MPI_CHAR",
                "The standard keeps MPI_CHAR for text. Other libraries compute it all the same, and so "
                "does this one, but with `--set STRICT=on`, which is for finding what may not work "
                "elsewhere.",
                call(0, "MPI_Allreduce", "MPI_SUM is not defined on this datatype by the MPI "
                     "standard", "count 1, datatype MPI_CHAR", "MPI_ERR_OP", "MPI_SIGNED_CHAR"), 10,
                ranks=1, options=("--set", "STRICT=on")),
        Mistake("aliased_buffers", "One buffer for sending and receiving",
                "It often seems to work with one library and one size, and gives wrong sums with "
                "another.",
                call(1, "MPI_Allreduce", "same memory", "count 1, datatype MPI_DOUBLE, 8 bytes",
                     "MPI_ERR_BUFFER", "MPI_IN_PLACE"), 1),
        Mistake("aliased_block", "A rank's own block, sent from where it is to end",
                "The root gathers into an array, and its own part is there already. All collectives "
                "look for this, block by block. Buffers that only lie in one another's gaps are right, "
                "and so are two of which one is empty.",
                call(0, "MPI_Gatherv", "same memory", "the block from rank 0", "count 2, datatype "
                     "MPI_INT, 8 bytes", "MPI_ERR_BUFFER", "MPI_IN_PLACE"), 1),
        Mistake("shared_window", "One buffer for several receives",
                "Bandwidth benchmarks do it, so it runs, and says nothing by itself. `--set STRICT=on` "
                "tells of it, also where a receive is begun over a send, or a send over a receive. The "
                "line comes once.",
                (r"^headway: rank 1: a receive \(source 0, tag 1, 8000 bytes\) begins in memory of "
                 r"another operation under way, a receive \(source 0, tag 0, 8000 bytes\): 8000 bytes "
                 r"are shared.*Likely remedy: use a buffer for each message",), 0,
                options=("--set", "STRICT=on")),
        Mistake("sendrecv_one_buffer", "One buffer for both halves of MPI_Sendrecv",
                "Many programs do it with a byte that nobody reads, so the program goes on: what goes "
                "out is copied first. The line comes once.",
                (r"^headway: rank \d on \S+: MPI_Sendrecv .*same memory.*Likely remedy: use "
                 "MPI_Sendrecv_replace", r"^headway: .*destination \d, tag 6"), 0),
    )),
    Section("Messages that do not fit", (
        Mistake("truncation", "A receive that is too short", "",
                call(1, "MPI_Recv", "16 bytes.* 8 ", "source 0, tag 8, count 2", "MPI_ERR_TRUNCATE",
                     "MPI_Probe"), 15),
        Mistake("wrong_datatype", "Different datatypes on both sides",
                "A datatype is not sent along, so no library sees the difference by itself. Where the "
                "sizes differ, the length shows it; an `MPI_FLOAT` that is received as an `MPI_INT` "
                "gives numbers without meaning, and no message.",
                call(1, "MPI_Recv", "800 bytes.* 400", "count 100, datatype MPI_INT",
                     "MPI_ERR_TRUNCATE", "wider datatype"), 15),
        Mistake("mismatched_collectives", "Different collectives", "",
                call(1, "MPI_Allreduce", "disagree", "MPI_ERR_TRUNCATE", "another collective"), 15),
        Mistake("mismatched_counts", "Different counts in a collective",
                "`MPI_Gatherv` is for parts of different lengths.",
                call(0, "MPI_Gather", "disagree", "MPI_ERR_TRUNCATE", "another count"), 15),
    )),
    Section("Begin and end", (
        Mistake("before_init", "A call before MPI_Init", "",
                (r"^headway: MPI_Comm_rank was called before MPI_Init\. Likely cause: .*"
                 "Likely remedy: call MPI_Init", "ended with code 1"), 1, ranks=1),
        Mistake("after_finalize", "A call after MPI_Finalize", "",
                (r"^headway: rank 1 on \S+: MPI_Barrier was called after MPI_Finalize\. Likely cause: "
                 ".*Likely remedy: ", "ended with code 1 after MPI_Finalize"), 1),
        Mistake("kept_communicator", "A communicator that was kept beyond MPI_Finalize",
                "A session goes on after `MPI_Finalize`, but what was made of `MPI_COMM_WORLD` ends there.",
                call(0, "MPI_Barrier", "has ended with MPI_Finalize", "MPI_ERR_COMM"), 5, ranks=1),
        Mistake("after_session", "A call after the last MPI_Session_finalize", "",
                (r"^headway: rank 1 on \S+: MPI_Barrier was called after the last session was finalized\. "
                 "Likely cause: .*Likely remedy: ", "ended with code 1 after MPI_Finalize"), 1),
        Mistake("session_left_open", "An end with a session open",
                "`MPI_Finalize` does not close sessions.",
                ("rank 1 .* ended without MPI_Finalize; the other rank is ended. Likely cause: .*"
                 "while a session was open. Likely remedy: .*MPI_Session_finalize for each session",), 1),
        Mistake("unknown_process_set", "A process set that does not exist",
                "`MPI_Session_get_nth_pset` gives the names that there are. Without a world an error ends "
                "the job through the handler that the session was given.",
                (r"^headway: rank 1 on \S+: MPI_Group_from_session_pset failed: there is no process set of that name",
                 "mpi://WORLD", "MPI_ERR_ARG"), 13),
        Mistake("no_finalize", "An end without MPI_Finalize",
                "The job would hang, as the others wait for this rank; so it is ended, and its code is "
                "never 0.",
                ("rank 1 .* ended without MPI_Finalize; the other rank is ended. Likely cause: .*"
                 "Likely remedy: ",), 1),
        Mistake("abort_with_zero", "MPI_Abort with code 0",
                "A job that was aborted never ends with 0: a script would take it for well.",
                (r"^headway: rank 1 on \S+: MPI_Abort was called on MPI_COMM_WORLD with code 0",
                 "rank 1 .* called MPI_Abort with code 0; the other rank is ended"), 1),
    )),
    Section("Requests and messages that are left over", (
        Mistake("missing_wait", "A missing MPI_Wait",
                "The program goes on to its end, and `--set FINALIZE_CHECK=off` keeps it silent.",
                (r"^headway: rank 1 on \S+: MPI_Finalize was called, and 1 request was never completed "
                 r"\(a send, destination 0, tag 3, 4 bytes, communicator MPI_COMM_WORLD of 2 ranks\)"
                 r"\. Likely cause: .*Likely remedy: ",), 0),
        Mistake("request_reuse", "A request that is completed twice", "",
                call(1, "MPI_Wait", "freed or completed before", "MPI_ERR_REQUEST"), 7),
        Mistake("unmatched_message", "A message that nobody receives",
                "A short message is gone before its receive; so the program ends, but for this line.",
                (r"^headway: rank 1 on \S+: MPI_Finalize was called, and 1 message was never received "
                 r"\(source 0, tag 17, 4 bytes, communicator MPI_COMM_WORLD of 2 ranks\)\. Likely "
                 "cause: .*Likely remedy: ",), 0),
        Mistake("unmatched_long_message", "A long message that nobody receives",
                "A long message waits for its receive, and so does the job: its sender goes on as far "
                "as the end, for the message was copied. The rank that owes the receive tells of it "
                "after a second.",
                (r"^headway: rank 1 on \S+: MPI_Finalize .* 1 message was never received "
                 r"\(source 0, tag 17, 800000 bytes", r"ranks 0 and 1 are in MPI_Finalize at \S+\.c:\d+, "
                 "and nothing has changed for .*Likely cause: a long message was sent that nobody receives"),
                124, options=("--timeout", "4")),
    )),
    Section("Ranks that wait for each other", (
        Mistake("sends_first", "Both send first",
                "It works with short messages, which are on their way at once, and hangs with long "
                "ones (here above the 16 MB of `SEND_AHEAD`). `mpiexec` says by itself that a job hangs, as far as that is proven; `--timeout` ends it, and tells where the ranks stand; so does "
                "Ctrl-C.",
                (r"the time of 4 s \(--timeout\) is over; still running: ranks 0, 1",
                 r"rank 0 is in MPI_Send \(destination 1, tag 3\) at sends_first\.c:\d+, rank 1 is in "
                 r"MPI_Send \(destination 0, tag 3\) at sends_first\.c:\d+, and nothing has changed for "
                 ".*Likely cause: .*Likely remedy: "), 124,
                options=("--timeout", "4")),
        Mistake("receives_first", "Both receive first", "",
                (r"rank 0 is in MPI_Recv \(source 1, tag 3\) at receives_first\.c:\d+, rank 1 is in "
                 r"MPI_Recv \(source 0, tag 3\) at receives_first\.c:\d+, and nothing .*Likely cause: "
                 ".*Likely remedy: ",), 124,
                options=("--timeout", "4")),
        Mistake("skipped_collective", "A collective in a branch that only some ranks take", "",
                (r"rank 0 is in MPI_Barrier at \S+\.c:\d+, rank 1 is in MPI_Finalize at \S+\.c:\d+, "
                 "and nothing .*Likely cause: "
                 r"rank 0 is in MPI_Barrier \(number 1 on MPI_COMM_WORLD\), which rank 1 has not come to"
                 ".*rank 1 is done.*Likely remedy: ",), 124, options=("--timeout", "4")),
        Mistake("crossed_collectives", "Collectives in another order on another rank",
                "Each rank's calls on a communicator are counted, and those of one number belong "
                "together.",
                ("Likely cause: as collective number 1 on MPI_COMM_WORLD rank 0 has called MPI_Reduce, "
                 "and rank 1 MPI_Bcast: different collectives.*Likely remedy: ",), 124,
                options=("--timeout", "4")),
        Mistake("crossed_tags", "Another tag on the other side", "",
                ("Likely cause: rank 0 sends to rank 1 with tag 3, and rank 1 receives from it with tag "
                 "4.*Likely remedy: ",), 124, options=("--timeout", "4")),
        Mistake("tests_in_vain", "A loop of MPI_Test that never ends",
                "A rank that asks again and again does not stand; so what is said is no more than "
                "what was seen.",
                (r"The others may be waiting for rank 1, which has called MPI_Test \(peer 0, tag 4\) "
                 r"\d+ times in this time, in vain\. Likely remedy: ",), 124,
                options=("--timeout", "4")),
    )),
    Section("Ranks that die", (
        Mistake("dead_rank", "A rank is killed while others send to it",
                "The job ends within a second, with 128 and the number of the signal.",
                (r"rank 1 .* was killed by signal 9 \(SIGKILL, Killed\); the other rank is ended\. "
                 "Likely cause: .*Likely remedy: ",), 137),
        Mistake("crash", "A crash", "",
                (r"rank 1 .* was killed by signal 11 \(SIGSEGV.*; the other rank is ended\. Likely "
                 "cause: .*Likely remedy: ",), 139),
    )),
    Section("Starting a job", (
        Mistake("static_link", "A program linked with -static",
                "",
                (r"^mpicc: there is no static library of Headway MPI, because .*libmpi_abi\.so\.1.*"
                 "Likely remedy: leave -static out",), 1,
                before="echo 'int main(void) { return 0; }' > $DIR/hello.c",
                command="mpicc -static $DIR/hello.c -o $DIR/hello"),
        Mistake("missing_program", "A program that is not there",
                "",
                ("there is no program ./helo; did you mean ./hello\\? Likely cause: ",), 127,
                command="mpiexec -n 2 ./helo"),
        Mistake("not_executable", "A file that is no program", "",
                ("is not executable .chmod",), 126, before="echo data > $DIR/input.txt",
                command="mpiexec -n 2 $DIR/input.txt"),
        Mistake("mistyped_option", "A mistyped option", "",
                ("did you mean PROGRESS",), 2, command="mpiexec -n 2 --set PROGRES=off ./hello"),
        Mistake("missing_host", "Another machine, and nothing that starts ranks there",
                "Ranks on other machines are started by an engine, which has to be installed.",
                ("node17: ranks on other machines are started by an engine, and none is installed here",
                 "apt install mpich", "prterun"), 2,
                command="mpiexec -n 2 --host node17 ./hello", path="/nowhere"),
        Mistake("wrong_launcher", "Another library's mpiexec",
                "A program of ours under Open MPI's `mpirun`, without the PMIx library that both could "
                "speak. Instead of as many jobs of one rank as there are ranks, one sentence.",
                ("MPI_Init failed: .*started by Open MPI's mpirun", "mpiexec"), 1,
                environment=(("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")),
                command="./hello"),
        Mistake("other_library", "A program that was built for another MPI", "",
                ("was built for Open MPI .it needs libmpi.so.40. and will run as ranks that do not "
                 "know of each other; build it with Headway's mpicc",), 0,
                command="mpiexec -n 2 ./built_for_open_mpi"),
        Mistake("full_disk", "A full disk under --output-dir",
                "The job goes on, but its code is not 0.",
                ("cannot write .*rank.0.out: No space left on device; output is being lost, the job "
                 "goes on. Likely remedy: make room",
                 "is not complete: [0-9]+ bytes could not be written"), 1,
                before="mkdir $DIR/logs; ln -s /dev/full $DIR/logs/rank.0.out",
                command="mpiexec -n 2 --output-dir $DIR/logs ./hello"),
    )),
)

ALL = tuple(mistake for section in SECTIONS for mistake in section.mistakes)
