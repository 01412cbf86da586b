// Contexts: the numbers that keep the messages of a communicator apart from those of all others,
// those of other jobs, too. Thread: any; plain values. Owner: none. Invariants: no two
// communicators of a process have the same context; in what a communicator has (Comm::context) the
// bits of collectives and of creation are 0. The bits, from the lowest:
//
//    0        1: the communicator's collectives
//    1 to 46  its number in its job: in turns the first of each rank, the second of each, ...
//   47 to 60  its job, by a hash: two jobs with the same one cannot be joined
//   61        made by a rank that has had a session: its messages may come to one that is between
//             two sessions and does not know it yet
//   62        what ranks of one side of an inter-communicator tell each other within a collective;
//             with the next one: made of groups alone
//   63        what is sent while one is made (communicators.cc, inter.cc)
#pragma once
#include <cstdint>

#include "base/check.h"

namespace headway::objects {

inline constexpr uint32_t context_number_bits = 46, context_job_bits = 14;
inline constexpr uint32_t context_job_shift = 1 + context_number_bits;
inline constexpr uint64_t late_context = uint64_t(1) << (context_job_shift + context_job_bits);
inline constexpr uint64_t from_group_context = late_context << 1;
inline constexpr uint64_t own_side_context = from_group_context;
inline constexpr uint64_t creation_context = late_context << 2;
static_assert(creation_context == uint64_t(1) << 63);

// Numbers of the start; those that are made follow.
inline constexpr uint64_t world_number = 1, self_number = 2, first_number = 3;

// Of the communicator that a rank of a job of `size` makes after `before` others.
constexpr uint64_t context_number(uint64_t before, uint32_t rank, uint32_t size) {
  HEADWAY_CHECK(rank < size);
  return first_number + before * size + rank;
}
constexpr bool is_context_number(uint64_t number) { return number >> context_number_bits == 0; }

constexpr uint64_t make_context(uint32_t job, uint64_t number) {
  HEADWAY_CHECK(job >> context_job_bits == 0 && number != 0 && is_context_number(number));
  return uint64_t(job) << context_job_shift | number << 1;
}
constexpr uint32_t context_job(uint64_t context) {
  return uint32_t(context >> context_job_shift) & ((1u << context_job_bits) - 1);
}
// Of what a communicator has.
constexpr bool is_context(uint64_t context) {
  return (context & (creation_context | from_group_context | 1)) == 0;
}

// The communicator's, of that of one of its messages. What is sent while one is made has none.
constexpr uint64_t comm_context(uint64_t of_message) {
  const uint64_t apart = of_message & creation_context ? 1 : own_side_context | 1;
  return of_message & ~apart;
}

// The job with that name (bootstrap::Job::job_id).
constexpr uint32_t job_number(const char* job_id) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char* at = job_id; *at; ++at) hash = (hash ^ uint8_t(*at)) * 0x100000001b3;
  // Names differ in their last letters, of which FNV's high bits know little.
  hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;
  return uint32_t(hash >> (64 - context_job_bits));
}

}  // namespace headway::objects
