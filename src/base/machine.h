// Machine: what this process may use of its machine, and who runs it. Thread: any. Owner: nobody;
// everything is looked up anew, which takes some reads of /proc: at start only, except
// where it says otherwise. Allocates nothing.
// Invariant: what cannot be read limits nothing.
#pragma once

namespace headway::base {

inline constexpr double no_quota = 1e9;

// The processor time that the control groups around this process allow, in cores: 1.5 is one and a
// half. The least of all groups that can be seen from here, or no_quota. `root` stands before every
// path, for tests.
double cpu_quota(const char* root = "");

// True where valgrind runs this process: it knows some system calls not at all, and takes for never
// written what another process writes into this one.
bool under_valgrind();

// The program has one thread beside the message thread, if there is that. False, too, if that
// cannot be told. No reads: one system call.
bool has_one_thread();

}  // namespace headway::base
