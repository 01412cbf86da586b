// Ghost exchanges in the forms of "Non-blocking MPI: Behavior and Performance", figures 6, 7, 12
// and 13.
#include "exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char* const form_names[form_count] = {"6", "7", "6c", "6ct", "12", "13"};

enum { tag_exchange = 5 };

// ---- plans
// ---------------------------------------------------------------------------------------
static void add(struct Piece** list, int* count, int* room, struct Piece piece) {
  if (*count == *room) {
    *room = *room ? 2 * *room : 64;
    struct Piece* grown = realloc(*list, (size_t)*room * sizeof piece);
    if (!grown) MPI_Abort(MPI_COMM_WORLD, 3);
    *list = grown;
  }
  (*list)[(*count)++] = piece;
}

void plan_add_out(struct Plan* p, struct Piece piece) {
  add(&p->out, &p->out_count, &p->room[0], piece);
}
void plan_add_in(struct Plan* p, struct Piece piece) {
  add(&p->in, &p->in_count, &p->room[1], piece);
}
void plan_add_local(struct Plan* p, struct Piece piece) {
  add(&p->local, &p->local_count, &p->room[2], piece);
}

static int in_order(const void* a, const void* b) {
  const struct Piece *x = a, *y = b;
  if (x->peer != y->peer) return x->peer < y->peer ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return (x->part > y->part) - (x->part < y->part);
}

static struct Message* messages_of(struct Piece* pieces, int count, int edge,
                                   size_t (*length)(int edge, int part), int* found) {
  if (count) qsort(pieces, (size_t)count, sizeof *pieces, in_order);
  struct Message* list = take_memory((size_t)count * sizeof *list);
  *found = 0;
  for (int i = 0; i < count; i++) {
    if (i == 0 || pieces[i].peer != pieces[i - 1].peer) {
      list[*found].peer = pieces[i].peer;
      list[(*found)++].first = i;
    }
    list[*found - 1].count++;
    list[*found - 1].length += length(edge, pieces[i].part);
  }
  for (int i = 0; i < *found; i++) list[i].buffer = take_memory(list[i].length * sizeof(double));
  return list;
}

void plan_end(struct Plan* p, int edge, size_t (*length)(int edge, int part)) {
  p->send = messages_of(p->out, p->out_count, edge, length, &p->send_count);
  p->receive = messages_of(p->in, p->in_count, edge, length, &p->receive_count);
  p->requests = take_memory((size_t)(p->send_count + p->receive_count) * sizeof *p->requests);
}

void plan_free(struct Plan* p) {
  for (int i = 0; i < p->send_count; i++) free(p->send[i].buffer);
  for (int i = 0; i < p->receive_count; i++) free(p->receive[i].buffer);
  free(p->send);
  free(p->receive);
  free(p->requests);
  free(p->out);
  free(p->in);
  free(p->local);
  memset(p, 0, sizeof *p);
}

// ---- one exchange
// ----------------------------------------------------------------------------------
static void note(struct Account* a, size_t doubles) {
  long bytes = (long)(doubles * sizeof(double));
  int bucket = (int)(16 * log2((double)bytes) + 0.5);
  a->messages++;
  a->bytes += (double)bytes;
  a->by_size[bucket < sizes_kept ? bucket : sizes_kept - 1]++;
  if (bytes > a->largest) a->largest = bytes;
  if (!a->smallest || bytes < a->smallest) a->smallest = bytes;
}

static void post_receives(struct Plan* p) {
  for (int i = 0; i < p->receive_count; i++) {
    struct Message* r = &p->receive[i];
    MPI_Irecv(r->buffer, (int)r->length, MPI_DOUBLE, r->peer, tag_exchange, MPI_COMM_WORLD,
              &p->requests[i]);
  }
}

static void send_all(struct Mesh* m, struct Plan* p, int paired, struct Account* a) {
  MPI_Request* requests = p->requests + p->receive_count;
  for (int i = 0; i < p->send_count; i++) {
    struct Message* s = &p->send[i];
    double* to = s->buffer;
    for (int k = 0; k < s->count; k++) to += p->pack(m, &p->out[s->first + k], to);
    double start = MPI_Wtime();
    MPI_Isend(s->buffer, (int)s->length, MPI_DOUBLE, s->peer, tag_exchange, MPI_COMM_WORLD,
              &requests[i]);
    if (paired) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    a->in_calls += MPI_Wtime() - start;
    note(a, s->length);
  }
}

static void test_receives(struct Plan* p, struct Account* a) {
  int flag;
  double start = MPI_Wtime();
  MPI_Testall(p->receive_count, p->requests, &flag, MPI_STATUSES_IGNORE);
  a->in_calls += MPI_Wtime() - start;
}

static void run(struct Work w, int part) {
  if (w.run) w.run(w.of, part);
}

void exchange(struct Mesh* m, struct Plan* p, enum Form form, struct Work work,
              struct Account* account) {
  int paired = form == form_6 || form == form_7 || form == form_12;
  int behind = form != form_12 && form != form_13;  // a part of the work comes behind the sends
  int tests = form == form_6ct ? 2 : form == form_7;
  double start = MPI_Wtime();
  post_receives(p);
  account->in_calls += MPI_Wtime() - start;
  for (int part = 0; part < (behind ? 1 : 3); part++) run(work, part);
  send_all(m, p, paired, account);
  for (int part = 1; behind && part < 3; part++) {
    if (tests-- > 0) test_receives(p, account);
    run(work, part);
  }
  start = MPI_Wtime();
  MPI_Waitall(p->receive_count + (paired ? 0 : p->send_count), p->requests, MPI_STATUSES_IGNORE);
  account->in_calls += MPI_Wtime() - start;
  for (int i = 0; i < p->local_count; i++) p->unpack(m, &p->local[i], NULL);
  for (int i = 0; i < p->receive_count; i++) {
    const double* from = p->receive[i].buffer;
    for (int k = 0; k < p->receive[i].count; k++)
      from += p->unpack(m, &p->in[p->receive[i].first + k], from);
  }
}
