// PmiClient: this rank's side of PMI-1, questions and answers over one socket to the launcher.
// Thread: one caller at a time. Owner: Bootstrap; it owns the descriptor, which is close-on-exec.
// Invariant: never more than one question is open; after a failure other than not_found or refused
// the connection is closed and every later call gives launcher_lost. Allocates nothing.
#pragma once
#include <cstddef>
#include <cstdint>

#include "bootstrap/outcome.h"
#include "bootstrap/pmi_wire.h"

namespace headway::bootstrap {

struct PmiHello {
  int rank = -1;
  int size = -1;
  int appnum = 0;
  int universe_size = 1;
};

class PmiClient {
 public:
  PmiClient() = default;
  PmiClient(const PmiClient&) = delete;
  PmiClient& operator=(const PmiClient&) = delete;

  // Takes over an inherited socket. `hello` comes with rank and size filled in.
  Outcome join(int fd, PmiHello& hello);

  // Connects to host:port (numbers or a name) and introduces itself with `id`; the launcher tells
  // rank and size.
  Outcome join_at(const char* host_and_port, int id, PmiHello& hello);

  Outcome put(const char* key, const char* value);
  Outcome get(const char* key, char* value, size_t capacity);
  Outcome barrier();

  // Name service: where another job listens.
  Outcome publish(const char* service, const char* port);
  Outcome look_up(const char* service, char* port, size_t capacity);
  Outcome unpublish(const char* service);

  // This rank has left MPI but lives on, or is back. Our own mpiexec hears both; others take the
  // first for good, and are asked nothing more.
  void leave();
  void come_back();

  void abort(int exit_code, const char* message);
  void finalize();
  void disconnect();
  // In a forked child: the connection is the parent's, so say nothing on it.
  void forget();

  bool connected() const { return fd_ >= 0; }
  const char* kvs_name() const { return kvs_name_; }

 private:
  Outcome greet(PmiHello& hello);
  Outcome ask(pmi::LineWriter& question, const char* answer_name, pmi::Line& answer);
  // The same for one value, which may be refused: there is none.
  Outcome ask_for(pmi::LineWriter& question, const char* answer_name, const char* key, char* value,
                  size_t capacity);
  Outcome ask_plain(const char* question, const char* answer_name, pmi::Line& answer);
  Outcome send(const char* data, size_t size);
  Outcome receive(pmi::Line& line);
  Outcome fill();
  Outcome broken(Outcome why);

  int fd_ = -1;
  bool ours_ = false;
  size_t key_limit_ = key_max;
  size_t value_limit_ = value_max;
  char kvs_name_[256] = "";
  pmi::LineBuffer in_;
};

}  // namespace headway::bootstrap
