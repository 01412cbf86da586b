/* layer_hash: a number for all that a rank received, by communicator, source and tag. Part of
   layer.c. A message's place in its row is that of its receive, in the order in which they were
   posted, so that it does not matter when which of them was over. Of receives from any source, or
   of any tag, it is not known before which row they belong to: they count without a place.

   Thread: any (`lock`). Owner: the layer. Invariant: two runs that received the same have the same
   rows. */
#ifndef HEADWAY_TRY_LAYER_HASH_H
#define HEADWAY_TRY_LAYER_HASH_H

#include "layer_tables.h"

static const uint64_t turn = 0x9e3779b97f4a7c15u, other_turn = 0xc2b2ae3d27d4eb4fu;

static uint64_t mixed(uint64_t value) {
  value = (value ^ value >> 32) * turn;
  value = (value ^ value >> 29) * other_turn;
  return value ^ value >> 32;
}

static uint64_t word_at(const unsigned char* at) {
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

static uint64_t turned(uint64_t lane, uint64_t word) {
  lane = (lane ^ word) * turn;
  return lane << 29 | lane >> 35;
}

static uint64_t hash_of(const unsigned char* data, size_t bytes) {
  uint64_t lanes[4] = {bytes, bytes + 1, bytes + 2, bytes + 3};
  size_t at = 0;
  for (; at + 32 <= bytes; at += 32) {
    for (int i = 0; i < 4; ++i) lanes[i] = turned(lanes[i], word_at(data + at + 8 * i));
  }
  unsigned char rest[32] = {0};
  memcpy(rest, data + at, bytes - at);
  for (int i = 0; i < 4; ++i) lanes[i] = turned(lanes[i], word_at(rest + 8 * i));
  return mixed(mixed(mixed(mixed(lanes[0]) ^ lanes[1]) ^ lanes[2]) ^ lanes[3]);
}

/* ---- rows ---- */

static TryChannel* channels;
static size_t channel_room, channel_count;

static TryChannel* channel_slot(uint32_t comm, int source, int tag) {
  const uint64_t key = mixed((uint64_t)comm << 32 ^ (uint32_t)source) ^ (uint32_t)tag * other_turn;
  size_t at = key & (channel_room - 1);
  while (channels[at].taken &&
         (channels[at].comm != comm || channels[at].source != source || channels[at].tag != tag))
    at = (at + 1) & (channel_room - 1);
  return &channels[at];
}

/* Locked. */
static TryChannel* channel_of(uint32_t comm, int source, int tag) {
  if (channel_count * 2 >= channel_room) {
    TryChannel* old = channels;
    const size_t was = channel_room;
    channel_room = was ? was * 2 : 256;
    channels = calloc(channel_room, sizeof *channels);
    if (!channels) try_give_up("no memory");
    for (size_t i = 0; i < was; ++i) {
      if (old[i].taken) *channel_slot(old[i].comm, old[i].source, old[i].tag) = old[i];
    }
    free(old);
  }
  TryChannel* found = channel_slot(comm, source, tag);
  if (!found->taken) {
    *found = (TryChannel){.comm = comm, .taken = 1, .source = source, .tag = tag, .weight = turn};
    ++channel_count;
  }
  return found;
}

/* ---- messages ---- */

static bool is_contiguous(MPI_Datatype type) {
  MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
  int size = 0;
  PMPI_Type_get_extent(type, &low, &extent);
  PMPI_Type_get_true_extent(type, &true_low, &true_extent);
  PMPI_Type_size(type, &size);
  return size == extent && size == true_extent;
}

/* A receive is about to be told: what of it, and its place in its row. Locked. */
static void note_receive(Operation* to, void* buffer, int64_t count, MPI_Datatype type, int source,
                         int tag, MPI_Comm comm, bool lasts) {
  if (!try_plan.hash) return;
  to->buffer = buffer;
  to->count = count;
  to->type = type;
  to->comm = comm == MPI_COMM_NULL ? 0 : id_of(comm);
  to->source = source;
  to->tag = tag;
  if (lasts && !is_contiguous(type)) to->own_type = PMPI_Type_dup(type, &to->type) == MPI_SUCCESS;
}

static void take_place(Operation* to) {
  to->weight = 1;
  if (!try_plan.hash || to->source == MPI_ANY_SOURCE || to->tag == MPI_ANY_TAG || to->comm == 0)
    return;
  TryChannel* channel = channel_of(to->comm, to->source, to->tag);
  to->weight = channel->weight;
  channel->weight = channel->weight * turn + 2 * (uint64_t)channel->source + 2;
}

static uint64_t hash_of_message(const Operation* op, MPI_Status* status) {
  int bytes = 0;
  if (PMPI_Get_count(status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED) {
    MPI_Count wide = 0;
    PMPI_Get_elements_x(status, MPI_BYTE, &wide);
    return is_contiguous(op->type) && wide > 0
               ? hash_of((const unsigned char*)op->bytes.begin, (size_t)wide)
               : mixed((uint64_t)wide);
  }
  if (bytes <= 0) return mixed(1);
  if (is_contiguous(op->type)) return hash_of((const unsigned char*)op->bytes.begin, (size_t)bytes);
  int items = 0, room = 0, at = 0;
  if (PMPI_Get_count(status, op->type, &items) != MPI_SUCCESS || items == MPI_UNDEFINED ||
      PMPI_Pack_size(items, op->type, MPI_COMM_SELF, &room) != MPI_SUCCESS)
    return mixed((uint64_t)bytes); /* a part of an item */
  unsigned char* packed = malloc((size_t)room + 1);
  if (!packed ||
      PMPI_Pack(op->buffer, items, op->type, packed, room, &at, MPI_COMM_SELF) != MPI_SUCCESS)
    try_give_up("what was received cannot be read");
  const uint64_t hash = hash_of(packed, (size_t)at);
  free(packed);
  return hash;
}

/* It was received. `op` is not in use by anybody else. */
static void came(const Operation* op, MPI_Status* status) {
  int was_cancelled = 0;
  if (!try_plan.hash) return;
  if (cancels) PMPI_Test_cancelled(status, &was_cancelled);
  if (was_cancelled || status->MPI_SOURCE == MPI_PROC_NULL) return;
  const uint64_t hash = hash_of_message(op, status);
  lock();
  TryChannel* channel = channel_of(op->comm, status->MPI_SOURCE, status->MPI_TAG);
  channel->sum += op->weight * (hash | 1);
  ++channel->count;
  unlock();
}

static void tell_result(void) { try_finish(channels, channel_room); }

#endif
