// What the programs' ranks do together: where each stands, sums over all of them, and the main
// function that parses, complains or works. Thread: main. Owns nothing.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace apps {

struct Place {
  int rank = 0, ranks = 1;
};

inline Place place_in(MPI_Comm comm) {
  Place place;
  MPI_Comm_rank(comm, &place.rank);
  MPI_Comm_size(comm, &place.ranks);
  return place;
}

// True on all ranks if it is on one.
inline bool anywhere(bool mine) {
  const int one = mine;
  int any = 0;
  MPI_Allreduce(&one, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any != 0;
}

// Sum modulo 2^64: a hash that does not depend on how the numbers are split over the ranks.
inline uint64_t sum_of_hashes(uint64_t mine, MPI_Comm comm) {
  uint64_t all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, comm);
  return all;
}

// `parse` returns what is wrong with the arguments, or an empty string. Rank 0 alone complains.
template <class Options>
int run_main(int argc, char** argv, const char* name, const char* usage,
             std::string (*parse)(int argc, char** argv, int ranks, Options& options),
             int (*work)(const Options& options, const Place& place)) {
  MPI_Init(&argc, &argv);
  const Place place = place_in(MPI_COMM_WORLD);
  Options options;
  const std::string wrong = parse(argc, argv, place.ranks, options);
  int result = 0;
  if (!wrong.empty()) {
    if (place.rank == 0) std::fprintf(stderr, "%s: %s\n%s", name, wrong.c_str(), usage);
    result = 2;
  } else if (options.help) {
    if (place.rank == 0) std::fputs(usage, stdout);
  } else {
    result = work(options, place);
  }
  MPI_Finalize();
  return result;
}

}  // namespace apps
