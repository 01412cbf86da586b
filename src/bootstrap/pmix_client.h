// PmixClient: the same verbs over PMIx (Open MPI's mpirun, PRRTE, srun --mpi=pmix, Flux), through
// libpmix.so.2, which is loaded only when such a server started us. Thread: one caller at a time;
// PMIx runs a thread of its own inside. Owner: Bootstrap. Invariant: no function pointer is used
// before all of them were found.
#pragma once
#include <cstddef>
#include <cstdint>

#include "bootstrap/outcome.h"

namespace headway::bootstrap {

struct PmixIdentity {
  int rank = -1;
  int size = -1;
  int appnum = 0;
  int universe_size = 1;
  char name_space[256] = "";
};

class PmixClient {
 public:
  PmixClient() = default;
  PmixClient(const PmixClient&) = delete;
  PmixClient& operator=(const PmixClient&) = delete;

  // wrong_launcher: the library is not there or too old; reason() says which.
  Outcome join(PmixIdentity& identity);
  Outcome put(const char* key, const char* value);
  Outcome get(const char* key, char* value, size_t capacity, int owner);
  Outcome fence();
  void abort(int exit_code, const char* message);
  void finalize();
  void forget() { joined_ = false; }

  bool joined() const { return joined_; }
  const char* reason() const { return reason_; }

 private:
  bool joined_ = false;
  char name_space_[256] = "";
  int rank_ = -1;
  char reason_[256] = "";
};

}  // namespace headway::bootstrap
