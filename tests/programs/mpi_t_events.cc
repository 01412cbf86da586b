// Events by MPI_T: what each says of itself; counts of events and counters agree; elements, order
// and times; in the midst of a wait and behind it; before MPI_Init and after MPI_Finalize.
#include <functional>

#include "mpi_t_events.h"

namespace {

using namespace mpi_t;

// --- what every event and source says of itself ---

void list_events() {
  std::set<std::string> names;
  CHECK(event_count() >= 11);
  for (int i = 0; i < event_count(); ++i) {
    const Event e = event(i);
    CHECK(e.name.rfind("headway_", 0) == 0);
    CHECK(names.insert(e.name).second);
    CHECK(e.help.size() > 10);
    CHECK_EQ(e.bind, MPI_T_BIND_NO_OBJECT);
    CHECK(e.verbosity == MPI_T_VERBOSITY_USER_BASIC || e.verbosity == MPI_T_VERBOSITY_TUNER_BASIC ||
          e.verbosity == MPI_T_VERBOSITY_MPIDEV_BASIC);
    CHECK(e.elements > 0 && e.elements <= most_elements);
    bool has_int = false;
    for (int k = 0; k < e.elements; ++k) {
      CHECK(e.types[k] == MPI_UNSIGNED_LONG_LONG || e.types[k] == MPI_COUNT ||
            e.types[k] == MPI_INT);
      CHECK_EQ(e.places[k], 8 * k);
      has_int |= e.types[k] == MPI_INT;
    }
    CHECK_EQ(has_int, e.enumtype != MPI_T_ENUM_NULL);
    int index = -1;
    MPI(MPI_T_event_get_index(e.name.c_str(), &index));
    CHECK_EQ(index, i);
    // No more elements than there is room for, and the number of all.
    MPI_Datatype types[2] = {MPI_CHAR, MPI_CHAR};
    MPI_Aint places[2] = {-7, -7};
    int elements = 1;
    MPI(MPI_T_event_get_info(i, nullptr, nullptr, nullptr, types, places, &elements, nullptr,
                             nullptr, nullptr, nullptr, nullptr));
    CHECK_EQ(elements, e.elements);
    CHECK(types[0] == e.types[0] && types[1] == MPI_CHAR);
    CHECK(places[0] == 0 && places[1] == -7);
    MPI(MPI_T_event_get_info(i, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                             nullptr, nullptr, nullptr, nullptr));
  }
}

void list_sources() {
  std::set<std::string> names;
  CHECK(source_count() >= 1 && source_count() <= most_sources);
  for (int i = 0; i < source_count(); ++i) {
    char name[room], help[room];
    int name_room = room, help_room = room;
    MPI_T_source_order order = MPI_T_SOURCE_UNORDERED;
    MPI_Count ticks = 0, most = 0;
    MPI_Info info = MPI_INFO_ENV;
    MPI(MPI_T_source_get_info(i, name, &name_room, help, &help_room, &order, &ticks, &most, &info));
    CHECK(names.insert(name).second);
    CHECK(strlen(help) > 10);
    CHECK_EQ(order, MPI_T_SOURCE_ORDERED);
    CHECK_EQ(ticks, 1'000'000'000);
    CHECK(info == MPI_INFO_NULL);
    const MPI_Count before = now(i), after = now(i);
    CHECK(before <= after && after < most);
    MPI(MPI_T_source_get_info(i, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                              nullptr));
  }
  // One clock for all.
  for (int i = 1; i < source_count(); ++i) CHECK(now(i - 1) <= now(i));
}

// The enumeration of the calls has every function of MPI under its name, and none of them.
void list_calls() {
  const Event e = event(index_of("wait_began"));
  int items = 0, name_room = room;
  char name[room];
  MPI(MPI_T_enum_get_info(e.enumtype, &items, name, &name_room));
  CHECK_EQ(std::string(name), "headway_calls");
  CHECK_EQ(items, 665);
  bool found = false;
  int value = -5, item_room = room;
  MPI(MPI_T_enum_get_item(e.enumtype, items - 1, &value, name, &item_room));
  CHECK_EQ(value, -1);
  CHECK_EQ(std::string(name), "none");
  for (int i = 0; i < items - 1; ++i) {
    value = -5;
    item_room = room;
    MPI(MPI_T_enum_get_item(e.enumtype, i, &value, name, &item_room));
    CHECK_EQ(value, i);
    CHECK(strncmp(name, "MPI_", 4) == 0);
    found |= strcmp(name, "MPI_Recv") == 0;
  }
  CHECK(found);
  EXPECT_CODE(MPI_T_ERR_INVALID_INDEX,
              MPI_T_enum_get_item(e.enumtype, items, nullptr, nullptr, nullptr));
}

// What is counted where the event is told.
const std::map<std::string, const char*> counted = {
    {"thread_woken", "thread_wakes"},         {"receive_posted", "posted_entries"},
    {"message_matched", "messages_received"}, {"message_unexpected", "unexpected"},
    {"receive_released", "released"},         {"page_touched", "page_faults"},
    {"prefetch_hit", "prefetch_hits"}};

std::map<std::string, Value> read_counted(const Counters& counters) {
  std::map<std::string, Value> values;
  for (const auto& [name, counter] : counted) values[name] = counters.read(counter);
  return values;
}

// --- traffic ---

void unexpected_ones() {
  const int to = (check::rank + 1) % check::size;
  const int from = (check::rank + check::size - 1) % check::size;
  int out = check::rank, in = -1;
  for (int tag = 0; tag < 10; ++tag) MPI(MPI_Send(&out, 1, MPI_INT, to, tag, MPI_COMM_WORLD));
  for (int tag = 9; tag >= 0; --tag) {
    MPI(MPI_Recv(&in, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(in, from);
  }
}

void traffic() {
  around(8, 30, 0);
  around(300'000, 4, 0);
  around(1 << 20, 2, 3000);
  unexpected_ones();
  int in = check::rank, out = 0;
  for (int i = 0; i < 5; ++i) {
    MPI(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    std::vector<int> all(size_t(check::size) * 5000), mine(5000, check::rank);
    MPI(MPI_Allgather(mine.data(), 5000, MPI_INT, all.data(), 5000, MPI_INT, MPI_COMM_WORLD));
  }
  MPI_Request request;
  std::vector<int> data(20'000, check::rank);
  MPI(MPI_Ibcast(data.data(), int(data.size()), MPI_INT, 0, MPI_COMM_WORLD, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_EQ(data.back(), 0);
}

// Reads the counters around handing over, since the message thread goes on counting.
void compare(const Counters& counters, const std::map<std::string, Value>& early,
             const std::map<std::string, Value>& late, std::map<std::string, Heard>& all) {
  std::string story;
  for (int tries = 0; tries < 5000; ++tries) {
    const auto before = read_counted(counters);
    call_mpi();
    const auto after = read_counted(counters);
    story.clear();
    for (const auto& [name, counter] : counted) {
      const Heard& heard = all.at(name);
      const Value events = heard.events + heard.dropped;
      if (events < before.at(name) - late.at(name) || events > after.at(name) - early.at(name)) {
        story += name + ": " + std::to_string(events) + " events, " + counter + " " +
                 std::to_string(after.at(name) - early.at(name)) + "; ";
      }
    }
    // Each wait has its end. Where the call above has waited, that is told by the next one.
    const Heard &began = all.at("wait_began"), &ended = all.at("wait_ended");
    if (began.events + began.dropped != ended.events + ended.dropped) {
      story += std::to_string(began.events + began.dropped) + " waits began, " +
               std::to_string(ended.events + ended.dropped) + " ended";
    }
    if (story.empty()) return;
    usleep(1000);  // receives that have been released are under way
  }
  check::fail(__FILE__, __LINE__, "%s", story.c_str());
}

void check_peer(MPI_Count peer) {
  CHECK(peer >= 0 && peer < check::size);
  CHECK(peer != check::rank || check::size == 1);
}

// Of events that need traffic of their own kind: what they can say.
void on_sensible(Instance instance, Registration registration, MPI_T_cb_safety safety, void* data) {
  on_event(instance, registration, safety, data);
  const int index = static_cast<Heard*>(data)->index;
  const std::string name = event(index).name;
  const std::vector<MPI_Count> says = elements_of(instance, index);
  constexpr MPI_Count most_bytes = 1 << 20, second = 1'000'000'000;
  if (name == "headway_receive_released") {
    if (says[0] != -1) check_peer(says[0]);
    CHECK(says[1] == 0 || says[1] == 1);
  } else if (name == "headway_prefetch_hit") {
    check_peer(says[0]);
    CHECK(says[1] > 0 && says[1] <= most_bytes);
    CHECK(says[2] >= 0 && says[2] < second);
  } else if (name == "headway_prefetch_missed") {
    check_peer(says[0]);
    CHECK(says[1] > 0 && says[1] <= most_bytes);
  }
}

void counts_agree(MPI_T_cb_safety safety) {
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  const Counters counters;
  std::map<std::string, Heard> all;
  const auto early = read_counted(counters);
  for (int i = 0; i < event_count(); ++i) {
    const std::string name = event(i).name.substr(strlen("headway_"));
    listen(all[name], name.c_str(), safety);
    MPI(MPI_T_event_register_callback(all[name].registration, safety, MPI_INFO_NULL, &all[name],
                                      on_sensible));
  }
  const auto late = read_counted(counters);
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  traffic();
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  compare(counters, early, late, all);
  CHECK(all["message_matched"].events + all["message_matched"].dropped >= 40);
  if (check::size > 1) CHECK(all["schedule_step"].events > 0);
  for (auto& [name, heard] : all) {
    for (const int level : heard.levels) CHECK(level == 0 || level == int(safety));
    stop(heard);
  }
}

void agree_between_calls() { counts_agree(MPI_T_CB_REQUIRE_NONE); }
void agree_in_waits() { counts_agree(MPI_T_CB_REQUIRE_MPI_RESTRICTED); }

// --- fields ---

struct Waited {
  Heard began, ended;
  std::string call;
  MPI_Count peer = -5;
};
Waited waited;

void on_wait(Instance instance, Registration registration, MPI_T_cb_safety safety, void* data) {
  on_event(instance, registration, safety, data);
  int call = -5, value = -1, name_room = room;
  MPI(MPI_T_event_read(instance, 0, &call));
  if (call < 0) return;
  MPI(MPI_T_event_read(instance, 1, &waited.peer));
  char name[room];
  MPI(MPI_T_enum_get_item(event(static_cast<Heard*>(data)->index).enumtype, call, &value, name,
                          &name_room));
  waited.call = name;
}

// Rank 1 waits for a message that is late. True: it has, and was told of it where it had to be; on
// a busy machine the message may have come first.
bool late_message(MPI_T_cb_safety safety, int late_us) {
  waited = {};
  int number = 0;
  if (check::rank == 0) {
    MPI(MPI_Recv(&number, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    usleep(useconds_t(late_us));
    number = 17;
    MPI(MPI_Send(&number, 1, MPI_INT, 1, 3, MPI_COMM_WORLD));
  }
  if (check::rank != 1) return false;
  listen(waited.began, "wait_began", safety);
  listen(waited.ended, "wait_ended", safety);
  MPI(MPI_T_event_register_callback(waited.began.registration, safety, MPI_INFO_NULL, &waited.began,
                                    on_wait));
  MPI(MPI_Send(&number, 1, MPI_INT, 0, 4, MPI_COMM_WORLD));
  MPI(MPI_Recv(&number, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  call_mpi();
  CHECK_EQ(number, 17);
  CHECK_EQ(waited.ended.events, waited.began.events);
  const bool may_be_in_it = safety == MPI_T_CB_REQUIRE_MPI_RESTRICTED;
  // The last one: pages that earlier messages have closed may be waited for, too.
  const bool was_in_it = waited.began.called < waited.ended.last;
  const bool has_waited = waited.ended.last - waited.began.last > 5'000'000;
  if (has_waited) {
    CHECK_EQ(waited.call, "MPI_Recv");
    CHECK_EQ(waited.peer, 0);
    CHECK(may_be_in_it || !was_in_it);
  }
  const bool told_there = was_in_it && waited.began.levels.count(int(safety)) == 1;
  stop(waited.began);
  stop(waited.ended);
  return has_waited && told_there == may_be_in_it;
}

void one_wait(MPI_T_cb_safety safety) {
  int has_waited = 0;
  for (int round = 1; round <= 20 && !has_waited; ++round) {
    has_waited = late_message(safety, 20'000 * round);
    MPI(MPI_Bcast(&has_waited, 1, MPI_INT, 1, MPI_COMM_WORLD));
  }
  CHECK(has_waited);
}

void waits() {
  one_wait(MPI_T_CB_REQUIRE_NONE);
  one_wait(MPI_T_CB_REQUIRE_MPI_RESTRICTED);
}

MPI_Count posted_fields[3];
void on_posted(Instance instance, Registration registration, MPI_T_cb_safety safety, void* data) {
  on_event(instance, registration, safety, data);
  for (int k = 0; k < 3; ++k) MPI(MPI_T_event_read(instance, k, &posted_fields[k]));
}

void fields() {
  Heard heard;
  listen(heard, "receive_posted", MPI_T_CB_REQUIRE_NONE);
  MPI(MPI_T_event_register_callback(heard.registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL,
                                    &heard, on_posted));
  int in[4] = {}, out[3] = {1, 2, 3};
  for (int round = 0; round < 2; ++round) {
    const int source = round == 0 ? 0 : MPI_ANY_SOURCE;
    MPI_Request request;
    MPI(MPI_Irecv(in, 4, MPI_INT, source, 12, MPI_COMM_SELF, &request));
    call_mpi();
    CHECK_EQ(posted_fields[0], source);
    CHECK_EQ(posted_fields[1], 12);
    CHECK_EQ(posted_fields[2], sizeof in);
    MPI(MPI_Send(out, 3, MPI_INT, 0, 12, MPI_COMM_SELF));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  CHECK_EQ(heard.events, 2);
  stop(heard);
}

// All that one kind of event says.
struct Kept : Heard {
  std::vector<std::vector<MPI_Count>> all;
  std::vector<MPI_Count> with_tag(MPI_Count tag) const {
    std::vector<MPI_Count> found;
    for (const auto& one : all) {
      if (one[1] == tag) found.insert(found.end(), one.begin(), one.end());
    }
    return found;
  }
};

void on_kept(Instance instance, Registration registration, MPI_T_cb_safety safety, void* data) {
  on_event(instance, registration, safety, data);
  auto* kept = static_cast<Kept*>(static_cast<Heard*>(data));
  kept->all.push_back(elements_of(instance, kept->index));
}

void keep(Kept& kept, const char* name) {
  listen(kept, name, MPI_T_CB_REQUIRE_NONE);
  MPI(MPI_T_event_register_callback(kept.registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL,
                                    static_cast<Heard*>(&kept), on_kept));
}

// Messages that their receives wait for, and such as come first, known by their tags.
void fields_of_messages() {
  constexpr int awaited = 4711, early = 4712, own = 4713;
  const int to = (check::rank + 1) % check::size;
  const int from = (check::rank + check::size - 1) % check::size;
  Kept matched, unexpected;
  keep(matched, "message_matched");
  keep(unexpected, "message_unexpected");
  int out[3] = {1, 2, 3}, in[4] = {};
  MPI_Request request;
  MPI(MPI_Irecv(in, 4, MPI_INT, MPI_ANY_SOURCE, awaited, MPI_COMM_WORLD, &request));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  MPI(MPI_Send(out, 3, MPI_INT, to, awaited, MPI_COMM_WORLD));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  MPI(MPI_Send(out, 2, MPI_INT, to, early, MPI_COMM_WORLD));
  MPI(MPI_Probe(from, early, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  MPI(MPI_Recv(in, 4, MPI_INT, from, early, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  MPI(MPI_Send(out, 1, MPI_INT, 0, own, MPI_COMM_SELF));
  MPI(MPI_Recv(in, 4, MPI_INT, 0, own, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  call_mpi();
  CHECK(matched.with_tag(awaited) == (std::vector<MPI_Count>{from, awaited, 12}));
  CHECK(matched.with_tag(early) == (std::vector<MPI_Count>{from, early, 8}));
  CHECK(matched.with_tag(own) == (std::vector<MPI_Count>{0, own, 4}));
  CHECK(unexpected.with_tag(awaited).empty());
  CHECK(unexpected.with_tag(early) == (std::vector<MPI_Count>{from, early, 8}));
  CHECK(unexpected.with_tag(own) == (std::vector<MPI_Count>{0, own, 4}));
  stop(matched);
  stop(unexpected);
}

// One collective: its steps have the name of its blocking function, and sensible kinds and peers.
void check_steps(const std::string& function, const std::function<void(MPI_Request*)>& start) {
  Kept kept;
  keep(kept, "schedule_step");
  MPI_Request request = MPI_REQUEST_NULL;
  start(&request);
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  call_mpi();
  const MPI_T_enum calls = event(kept.index).enumtype;
  bool sends = false, receives = false;
  for (const std::vector<MPI_Count>& one : kept.all) {
    int value = -5, name_room = room;
    char name[room];
    CHECK(one[1] >= 0);
    MPI(MPI_T_enum_get_item(calls, int(one[1]), &value, name, &name_room));
    CHECK_EQ(std::string(name), function);
    CHECK(one[0] >= 0 && one[0] <= 4);
    sends |= one[0] == 0;
    receives |= one[0] == 1;
    if (one[0] > 1) {
      CHECK_EQ(one[2], -1);
    } else {
      check_peer(one[2]);
    }
  }
  if (check::size > 1) CHECK(sends || receives);
  if (function == "MPI_Bcast") {
    CHECK(check::rank > 0 || !receives);
    CHECK(check::rank == 0 || receives);
  }
  stop(kept);
}

void fields_of_steps() {
  const size_t blocks = size_t(check::size) + 2;
  std::vector<int> in(3 * blocks, check::rank), out(3 * blocks), counts(blocks, 3), places(blocks),
      bytes(blocks);
  std::vector<MPI_Aint> far(blocks);
  std::vector<MPI_Datatype> types(blocks, MPI_INT);
  for (size_t i = 0; i < blocks; ++i) {
    places[i] = int(3 * i);
    bytes[i] = int(12 * i);
    far[i] = MPI_Aint(12 * i);
  }
  int *const from = in.data(), *const to = out.data();
  const int *const n = counts.data(), *const at = places.data(), *const byte = bytes.data();
  const MPI_Aint* const address = far.data();
  const MPI_Datatype one = MPI_INT, *const each = types.data();
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Comm ring = MPI_COMM_NULL;
  const int around_it = 1;
  MPI(MPI_Cart_create(world, 1, &check::size, &around_it, 0, &ring));
  using R = MPI_Request*;
  const std::vector<std::pair<const char*, std::function<void(R)>>> all = {
      {"MPI_Barrier", [&](R r) { MPI(MPI_Ibarrier(world, r)); }},
      {"MPI_Bcast", [&](R r) { MPI(MPI_Ibcast(to, 3, one, 0, world, r)); }},
      {"MPI_Gather", [&](R r) { MPI(MPI_Igather(from, 3, one, to, 3, one, 0, world, r)); }},
      {"MPI_Gatherv", [&](R r) { MPI(MPI_Igatherv(from, 3, one, to, n, at, one, 0, world, r)); }},
      {"MPI_Scatter", [&](R r) { MPI(MPI_Iscatter(from, 3, one, to, 3, one, 0, world, r)); }},
      {"MPI_Scatterv", [&](R r) { MPI(MPI_Iscatterv(from, n, at, one, to, 3, one, 0, world, r)); }},
      {"MPI_Allgather", [&](R r) { MPI(MPI_Iallgather(from, 3, one, to, 3, one, world, r)); }},
      {"MPI_Allgatherv",
       [&](R r) { MPI(MPI_Iallgatherv(from, 3, one, to, n, at, one, world, r)); }},
      {"MPI_Alltoall", [&](R r) { MPI(MPI_Ialltoall(from, 3, one, to, 3, one, world, r)); }},
      {"MPI_Alltoallv",
       [&](R r) { MPI(MPI_Ialltoallv(from, n, at, one, to, n, at, one, world, r)); }},
      {"MPI_Alltoallw",
       [&](R r) { MPI(MPI_Ialltoallw(from, n, byte, each, to, n, byte, each, world, r)); }},
      {"MPI_Reduce", [&](R r) { MPI(MPI_Ireduce(from, to, 3, one, MPI_SUM, 0, world, r)); }},
      {"MPI_Allreduce", [&](R r) { MPI(MPI_Iallreduce(from, to, 3, one, MPI_SUM, world, r)); }},
      {"MPI_Reduce_scatter",
       [&](R r) { MPI(MPI_Ireduce_scatter(from, to, n, one, MPI_SUM, world, r)); }},
      {"MPI_Reduce_scatter_block",
       [&](R r) { MPI(MPI_Ireduce_scatter_block(from, to, 3, one, MPI_SUM, world, r)); }},
      {"MPI_Scan", [&](R r) { MPI(MPI_Iscan(from, to, 3, one, MPI_SUM, world, r)); }},
      {"MPI_Exscan", [&](R r) { MPI(MPI_Iexscan(from, to, 3, one, MPI_SUM, world, r)); }},
      {"MPI_Neighbor_allgather",
       [&](R r) { MPI(MPI_Ineighbor_allgather(from, 3, one, to, 3, one, ring, r)); }},
      {"MPI_Neighbor_allgatherv",
       [&](R r) { MPI(MPI_Ineighbor_allgatherv(from, 3, one, to, n, at, one, ring, r)); }},
      {"MPI_Neighbor_alltoall",
       [&](R r) { MPI(MPI_Ineighbor_alltoall(from, 3, one, to, 3, one, ring, r)); }},
      {"MPI_Neighbor_alltoallv",
       [&](R r) { MPI(MPI_Ineighbor_alltoallv(from, n, at, one, to, n, at, one, ring, r)); }},
      {"MPI_Neighbor_alltoallw", [&](R r) {
         MPI(MPI_Ineighbor_alltoallw(from, n, address, each, to, n, address, each, ring, r));
       }}};
  const int left = (check::rank + check::size - 1) % check::size;
  const int right = (check::rank + 1) % check::size;
  for (const auto& [function, start] : all) {
    out.assign(out.size(), -1);  // in its place
    check_steps(function, start);
    if (strncmp(function, "MPI_Neighbor_", 13) != 0) continue;
    const std::vector<int> wanted = {left, left, left, right, right, right, -1};
    CHECK(std::vector<int>(to, to + 7) == wanted);
  }
  MPI(MPI_Comm_free(&ring));
}

// --- before MPI_Init and after MPI_Finalize ---

Heard always, posted_ever;

void before_init() {
  check::running = "before_init";
  int provided = -1;
  MPI(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
  list_events();
  list_sources();
  list_calls();
  listen(always, "message_matched", MPI_T_CB_REQUIRE_MPI_RESTRICTED);
  listen(posted_ever, "receive_posted", MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE);
}

void after_finalize() {
  check::running = "after_finalize";
  {
    const Counters counters;
    CHECK_EQ(always.events + always.dropped, counters.read("messages_received"));
    CHECK_EQ(posted_ever.events + posted_ever.dropped, counters.read("posted_entries"));
  }
  for (Heard* heard : {&always, &posted_ever}) {
    MPI(MPI_T_event_handle_free(heard->registration, heard, on_freed));
    CHECK_EQ(heard->freed, 1);
  }
  list_events();
  // With the interface goes what is left.
  Heard left;
  listen(left, "wait_began", MPI_T_CB_REQUIRE_NONE);
  MPI(MPI_T_finalize());
  int number = -1;
  EXPECT_CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_event_get_num(&number));
  MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &number));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE,
              MPI_T_event_handle_free(left.registration, &left, on_freed));
  CHECK_EQ(left.freed, 0);
  MPI(MPI_T_finalize());
}

}  // namespace

int main(int argc, char** argv) {
  before_init();
  const int code = check::main(argc, argv,
                               {{"list_events", list_events},
                                {"list_sources", list_sources},
                                {"list_calls", list_calls},
                                {"agree_between_calls", agree_between_calls},
                                {"agree_in_waits", agree_in_waits},
                                {"waits", waits, 2},
                                {"fields", fields},
                                {"fields_of_messages", fields_of_messages},
                                {"fields_of_steps", fields_of_steps}});
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) after_finalize();
  return code;
}
