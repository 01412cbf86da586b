// The limit of collectives between two ranks, by the pipes of mpi.h, for collective.c: what has to
// go to the other rank goes through its pipe once, sums are formed on the way out of it, a rank's
// own block is copied beside it. With more ranks the best way is nobody's knowledge, so there is no
// limit. Thread: as in mpi.h.
#pragma once

typedef int MPI_Op;
enum { MPI_SUM = 1 };

static inline int limit_other(void) {
  if (limit_ranks != 2) limit_fail("collectives have a limit between two ranks only");
  return 1 - limit_rank;
}

static inline size_t limit_bytes(int count, MPI_Datatype type) {
  return (size_t)count * (size_t)type;
}

// What the other rank sends, with `own` added to it, or as it is.
static inline struct LimitOperation* limit_receive(void* memory, const void* own, size_t bytes) {
  struct LimitOperation* receive = limit_begin(&limit_peer(limit_other())->in, memory, bytes);
  receive->addends = own;
  return receive;
}

static inline struct LimitOperation* limit_send(const void* memory, size_t bytes) {
  struct LimitSide* side = &limit_peer(limit_other())->out;
  struct LimitOperation* send = limit_begin(side, memory, bytes);
  limit_send_some(side);
  return send;
}

static inline int limit_swap(const void* out, void* in, const void* own, size_t bytes) {
  struct LimitOperation* receive = limit_receive(in, own, bytes);
  limit_wait(limit_send(out, bytes));
  limit_wait(receive);
  return 0;
}

static inline int MPI_Barrier(MPI_Comm comm) {
  char nothing = 0;
  return (void)comm, limit_swap(&nothing, &nothing, NULL, 0);
}

static inline int MPI_Bcast(void* memory, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  size_t bytes = limit_bytes(count, type);
  (void)comm;
  limit_wait(root == limit_rank ? limit_send(memory, bytes) : limit_receive(memory, NULL, bytes));
  return 0;
}

static inline int MPI_Reduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op,
                             int root, MPI_Comm comm) {
  size_t bytes = limit_bytes(count, type);
  (void)op, (void)comm;
  if (type != MPI_DOUBLE) limit_fail("sums are of doubles");
  limit_wait(root == limit_rank ? limit_receive(in, out, bytes) : limit_send(out, bytes));
  return 0;
}

static inline int MPI_Allreduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op,
                                MPI_Comm comm) {
  (void)op, (void)comm;
  if (type != MPI_DOUBLE) limit_fail("sums are of doubles");
  return limit_swap(out, in, out, limit_bytes(count, type));
}

static inline int MPI_Gather(const void* out, int count, MPI_Datatype type, void* in, int in_count,
                             MPI_Datatype in_type, int root, MPI_Comm comm) {
  size_t bytes = limit_bytes(count, type);
  (void)in_count, (void)in_type, (void)comm;
  if (root != limit_rank) {
    limit_wait(limit_send(out, bytes));
    return 0;
  }
  memcpy((char*)in + (size_t)limit_rank * bytes, out, bytes);
  limit_wait(limit_receive((char*)in + (size_t)limit_other() * bytes, NULL, bytes));
  return 0;
}

static inline int MPI_Scatter(const void* out, int count, MPI_Datatype type, void* in, int in_count,
                              MPI_Datatype in_type, int root, MPI_Comm comm) {
  size_t bytes = limit_bytes(count, type);
  (void)in_count, (void)in_type, (void)comm;
  if (root != limit_rank) {
    limit_wait(limit_receive(in, NULL, bytes));
    return 0;
  }
  struct LimitOperation* send = limit_send((const char*)out + (size_t)limit_other() * bytes, bytes);
  memcpy(in, (const char*)out + (size_t)limit_rank * bytes, bytes);
  limit_wait(send);
  return 0;
}

static inline int MPI_Allgather(const void* out, int count, MPI_Datatype type, void* in,
                                int in_count, MPI_Datatype in_type, MPI_Comm comm) {
  size_t bytes = limit_bytes(count, type);
  (void)in_count, (void)in_type, (void)comm;
  limit_swap(out, (char*)in + (size_t)limit_other() * bytes, NULL, bytes);
  memcpy((char*)in + (size_t)limit_rank * bytes, out, bytes);
  return 0;
}

static inline int MPI_Alltoall(const void* out, int count, MPI_Datatype type, void* in,
                               int in_count, MPI_Datatype in_type, MPI_Comm comm) {
  size_t bytes = limit_bytes(count, type), own = (size_t)limit_rank * bytes;
  size_t other = (size_t)limit_other() * bytes;
  (void)in_count, (void)in_type, (void)comm;
  limit_swap((const char*)out + other, (char*)in + other, NULL, bytes);
  memcpy((char*)in + own, (const char*)out + own, bytes);
  return 0;
}
