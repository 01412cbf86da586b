#include "objects/comm.h"

#include <cstring>
#include <new>

#include "base/check.h"
#include "base/heap.h"
#include "objects/context.h"
#include "objects/info.h"

namespace headway::objects {
namespace {

struct HintName {
  const char* key;
  uint32_t bit;
};
constexpr HintName hint_names[] = {
    {"mpi_assert_no_any_tag", Hint::no_any_tag},
    {"mpi_assert_no_any_source", Hint::no_any_source},
    {"mpi_assert_exact_length", Hint::exact_length},
    {"mpi_assert_allow_overtaking", Hint::allow_overtaking},
    {"mpi_assert_strict_persistent_collective_ordering", Hint::strict_persistent_order},
};

}  // namespace

Comm* make_comm(uint64_t context, Group* group, Errhandler* errhandler) {
  void* memory = base::heap_allocate(sizeof(Comm));
  if (!memory) return nullptr;
  HEADWAY_CHECK(is_context(context) && group->self >= undefined_rank && group->self < group->size);
  auto* comm = new (memory) Comm{};
  comm->context = context;
  comm->group = comm->peers = group;
  comm->own = comm->others = Team(*group);
  comm->errhandler = errhandler;
  group->retain();
  errhandler->retain();
  return comm;
}

void bridge(Comm& comm, Group* remote, bool leads) {
  HEADWAY_CHECK(!comm.is_inter() && remote->size > 0 && remote->self == undefined_rank);
  remote->retain();
  comm.peers = remote;
  comm.others = Team(*remote);
  comm.leads = leads;
}

void release(Comm* comm) {
  const uint32_t before = comm->references.fetch_sub(1, std::memory_order_acq_rel);
  HEADWAY_CHECK(before != 0);
  if (before != 1) return;
  comm->attributes.drop();
  if (comm->topology) comm->topology->release();
  if (comm->peers != comm->group) comm->peers->release();
  comm->group->release();
  release(comm->errhandler);
  base::heap_free(comm, sizeof(Comm));
}

void take_hints(Comm& comm, const Info& info) {
  for (const HintName& hint : hint_names) {
    const char* value = info.find(hint.key);
    if (!value) continue;
    if (strcmp(value, "true") == 0) comm.hints.fetch_or(hint.bit, std::memory_order_relaxed);
    if (strcmp(value, "false") == 0) comm.hints.fetch_and(~hint.bit, std::memory_order_relaxed);
  }
}

bool tell_hints(const Comm& comm, Info& info) {
  const uint32_t hints = comm.hints.load(std::memory_order_relaxed);
  for (const HintName& hint : hint_names) {
    if (!info.set(hint.key, hints & hint.bit ? "true" : "false")) return false;
  }
  return true;
}

void release(Errhandler* errhandler) {
  if (errhandler->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (errhandler->kind == ErrhandlerKind::user) base::heap_free(errhandler, sizeof(Errhandler));
}

}  // namespace headway::objects
