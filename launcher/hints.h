// Hints: what usually stands behind the end of a rank, and what to do: the second half of the line
// with which a job ends. Thread: none. Owns nothing.
#pragma once

namespace headway::launcher {

// Each is "" or a text that begins with " Likely ".
const char* hint_for_signal(int number);
extern const char* const hint_out_of_memory;
extern const char* const hint_no_finalize;
extern const char* const hint_no_init;

}  // namespace headway::launcher
