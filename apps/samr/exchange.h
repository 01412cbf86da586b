// Messages between neighbours: which pieces go to whom, and the forms in which a program can
// exchange them. Owner: its rank's one thread. Invariant: one message a pair of ranks and exchange,
// its pieces in the same order on both sides.
#pragma once

#include "mesh.h"

// How a ghost exchange is written. Figures of the paper; the last letters: waits collected, with
// tests.
enum Form { form_6, form_7, form_6c, form_6ct, form_12, form_13, form_count };
extern const char* const form_names[form_count];

struct Piece {
  int peer, to, part, from;  // blocks by index; what `part` means is the plan's
};

struct Message {
  int peer, first, count;  // its pieces
  size_t length;           // doubles
  double* buffer;
};

// What one exchange moves.
struct Plan {
  struct Piece *out, *in, *local;
  int out_count, in_count, local_count, room[3];
  struct Message *send, *receive;
  int send_count, receive_count;
  MPI_Request* requests;  // receives, then sends
  size_t (*pack)(const struct Mesh* m, const struct Piece* p, double* to);
  size_t (*unpack)(struct Mesh* m, const struct Piece* p, const double* from);
};

enum { sizes_kept = 512 };  // buckets of messages, sixteen an octave

// Where time goes, seconds of this rank; and what was sent.
struct Account {
  double in_calls;  // of exchanges
  double reducing, regridding;
  long messages, largest, smallest, by_size[sizes_kept];
  double bytes;
};

// Computation in an exchange; `part` 0 comes before the sends, 1 and 2 behind them: halves.
struct Work {
  void (*run)(void* of, int part);
  void* of;
};

void plan_add_local(struct Plan* p, struct Piece piece);
void plan_add_out(struct Plan* p, struct Piece piece);
void plan_add_in(struct Plan* p, struct Piece piece);
// Ends a plan's making: `length` is the doubles of a piece.
void plan_end(struct Plan* p, int edge, size_t (*length)(int edge, int part));
void plan_free(struct Plan* p);
// What it says: receives posted, work, sends, work, all completed and put in place.
void exchange(struct Mesh* m, struct Plan* p, enum Form form, struct Work work,
              struct Account* account);
