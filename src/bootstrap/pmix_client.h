// PmixClient: the same verbs over PMIx (Open MPI's mpirun, PRRTE, srun --mpi=pmix, Flux), through
// libpmix.so.2, which is loaded only when such a server started us. Thread: one caller at a time;
// PMIx runs a thread of its own inside, and allocates. Owner: Bootstrap. Invariant: no function
// pointer is used before all of them were found.
#pragma once
#include <cstddef>
#include <cstdint>

#include "bootstrap/node_map.h"
#include "bootstrap/outcome.h"
#include "bootstrap/pmix_abi.h"

namespace headway::bootstrap {

struct PmixIdentity {
  int rank = -1;
  int size = -1;
  int appnum = 0;
  int universe_size = 1;
};

class PmixClient {
 public:
  PmixClient() = default;
  PmixClient(const PmixClient&) = delete;
  PmixClient& operator=(const PmixClient&) = delete;

  // wrong_launcher: the library is not there or its server does not answer; reason() says which.
  Outcome join(PmixIdentity& identity);
  Outcome put(const char* key, const char* value);
  // With an owner on another machine, the key must be one that it puts, fence or no fence: else the
  // server may wait for it, up to its time limit.
  Outcome get(const char* key, char* value, size_t capacity, int owner);
  Outcome fence();
  void abort(int exit_code, const char* message) const;
  void finalize();

  // The node of a rank, or -1.
  int node_of(int rank) const;
  // The ranks of this node, in one question.
  Beside beside() const;

  bool joined() const { return joined_; }
  // The library's own word for why the last call failed; "" if it has none.
  const char* reason() const { return reason_; }
  // The job's name among all jobs of its launcher.
  const char* name_space() const { return self_.name_space; }

 private:
  bool load();
  Outcome say_no(Outcome outcome, pmix::Status status);
  pmix::Value* ask(const char* key, int owner, pmix::Status& status) const;
  bool get_number(uint32_t rank, const char* key, int& number) const;
  pmix::Process process(uint32_t rank) const;

  bool joined_ = false;
  pmix::Functions pmix_ = {};
  pmix::Process self_ = {};
  char reason_[256] = "";
};

}  // namespace headway::bootstrap
