// Counters: the values of settings::counter_table, for MPI_T, the JSON file and people. Thread:
// any, a signal handler too: every value is read by itself, with a relaxed load and no lock, so two
// of them may be some events apart. Owns nothing. Invariant: no reading changes or delays anything.
#pragma once
#include <cstddef>
#include <cstdint>

#include "settings/counters.h"

namespace headway::protocols {
class Engine;
}

namespace headway::runtime {

// The counter that row `index` of the table explains.
uint64_t read_counter(const protocols::Engine& engine, size_t index);
// One JSON object with all of this rank's counters; "%r" in the name becomes the rank.
void write_counters_file(const protocols::Engine& engine, int rank, const char* name);
// One line for people: what early release did on this rank, and why not more; if it may do
// anything.
void write_summary(const protocols::Engine& engine, int rank);

}  // namespace headway::runtime
