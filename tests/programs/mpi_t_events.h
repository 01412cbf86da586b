// What the programs for events by MPI_T share: their descriptions, and what a callback notes of
// those that it hears of. Thread: callbacks run one at a time, on threads of the program. Owner:
// each program. Invariant: a call that fails ends the job with its line.
#pragma once
#include <unistd.h>

#include <set>
#include <vector>

#include "mpi_t.h"

namespace mpi_t {

using Registration = MPI_T_event_registration;
using Instance = MPI_T_event_instance;

inline constexpr int most_elements = 8;
inline constexpr int most_sources = 8;

struct Event {
  std::string name, help;
  int verbosity = 0, bind = -1, elements = 0;
  MPI_Datatype types[most_elements] = {};
  MPI_Aint places[most_elements] = {};
  MPI_T_enum enumtype = MPI_T_ENUM_NULL;
};

inline int event_count() {
  int n = -1;
  MPI(MPI_T_event_get_num(&n));
  return n;
}

inline int source_count() {
  int n = -1;
  MPI(MPI_T_source_get_num(&n));
  return n;
}

inline Event event(int index) {
  Event e;
  char name[room], help[2 * room];
  int name_room = room, help_room = 2 * room;
  MPI_Info info = MPI_INFO_ENV;
  e.elements = most_elements;
  MPI(MPI_T_event_get_info(index, name, &name_room, &e.verbosity, e.types, e.places, &e.elements,
                           &e.enumtype, &info, help, &help_room, &e.bind));
  CHECK(info == MPI_INFO_NULL);
  e.name = name;
  e.help = help;
  CHECK_EQ(name_room, e.name.size() + 1);
  CHECK_EQ(help_room, e.help.size() + 1);
  return e;
}

inline int index_of(const char* name) {
  int index = -1;
  MPI(MPI_T_event_get_index((std::string("headway_") + name).c_str(), &index));
  return index;
}

inline MPI_Count now(int source = 0) {
  MPI_Count time = -1;
  MPI(MPI_T_source_get_timestamp(source, &time));
  return time;
}

// Any call with a communicator hands over what waits.
inline void call_mpi() {
  int size = 0;
  MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
}

// --- listening ---

// What callbacks note. They run one at a time, on threads of the program.
struct Heard {
  uint64_t events = 0, dropped = 0, freed = 0;
  MPI_Count first = 0, last = 0;  // times
  MPI_Count called = 0;           // when the last one was handed over
  std::set<int> levels, sources;
  Registration registration = nullptr;
  int index = -1;
};
inline MPI_Count last_of_source[most_sources];
inline Instance last_instance;

inline void on_event(Instance instance, Registration registration, MPI_T_cb_safety safety,
                     void* data) {
  auto* heard = static_cast<Heard*>(data);
  CHECK(heard->registration == registration);
  ++heard->events;
  MPI_Count time = -1;
  int source = -1;
  MPI(MPI_T_event_get_timestamp(instance, &time));
  MPI(MPI_T_event_get_source(instance, &source));
  CHECK(source >= 0 && source < source_count());
  heard->called = now(source);
  CHECK(time > 0 && time <= heard->called);
  // The events of a source come in its order, whatever they are.
  CHECK(time >= last_of_source[source]);
  last_of_source[source] = time;
  if (heard->first == 0) heard->first = time;
  heard->last = time;
  heard->levels.insert(int(safety));
  heard->sources.insert(source);
  last_instance = instance;
  // All of it at once is what is read piece by piece, and nothing lies between the elements.
  const Event e = event(heard->index);
  unsigned char whole[8 * most_elements];
  memset(whole, 0x5a, sizeof whole);
  MPI(MPI_T_event_copy(instance, whole));
  for (int k = 0; k < e.elements; ++k) {
    const size_t size = e.types[k] == MPI_INT ? 4 : 8;
    unsigned char piece[8];
    memset(piece, 0x5a, sizeof piece);
    MPI(MPI_T_event_read(instance, k, piece));
    CHECK_EQ(memcmp(piece, whole + e.places[k], sizeof piece), 0);
    CHECK_UNTOUCHED(piece + size, sizeof piece - size, 0x5a);
  }
  CHECK_UNTOUCHED(whole + 8 * e.elements, sizeof whole - 8 * size_t(e.elements), 0x5a);
  uint64_t place = 0;
  EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_event_read(instance, e.elements, &place));
  EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_event_read(instance, -1, &place));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_read(instance, 0, nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_copy(instance, nullptr));
}

// The elements of the event whose callback runs, calls by their numbers.
inline std::vector<MPI_Count> elements_of(Instance instance, int index) {
  const Event e = event(index);
  std::vector<MPI_Count> elements;
  for (int k = 0; k < e.elements; ++k) {
    MPI_Count wide = -9;
    int narrow = -9;
    const bool is_call = e.types[k] == MPI_INT;
    MPI(MPI_T_event_read(instance, k, is_call ? static_cast<void*>(&narrow) : &wide));
    elements.push_back(is_call ? narrow : wide);
  }
  return elements;
}

inline void on_dropped(MPI_Count count, Registration registration, int source, MPI_T_cb_safety,
                       void* data) {
  auto* heard = static_cast<Heard*>(data);
  CHECK(heard->registration == registration);
  CHECK(count > 0 && source >= 0 && source < source_count());
  heard->dropped += uint64_t(count);
}

inline void on_freed(Registration registration, MPI_T_cb_safety, void* data) {
  auto* heard = static_cast<Heard*>(data);
  CHECK(heard->registration == registration);
  ++heard->freed;
}

inline void listen(Heard& heard, const char* name, MPI_T_cb_safety safety) {
  heard.index = index_of(name);
  MPI(MPI_T_event_handle_alloc(heard.index, nullptr, MPI_INFO_NULL, &heard.registration));
  MPI(MPI_T_event_set_dropped_handler(heard.registration, on_dropped));
  MPI(MPI_T_event_register_callback(heard.registration, safety, MPI_INFO_NULL, &heard, on_event));
}

inline void stop(Heard& heard) {
  MPI(MPI_T_event_handle_free(heard.registration, &heard, on_freed));
  CHECK_EQ(heard.freed, 1);
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE,
              MPI_T_event_handle_free(heard.registration, &heard, on_freed));
  const uint64_t events = heard.events;
  call_mpi();
  CHECK_EQ(heard.events, events);
}

// Each rank sends to the next, and receives from the one before it.
inline void around(int bytes, int times, int late_us) {
  const int to = (check::rank + 1) % check::size;
  const int from = (check::rank + check::size - 1) % check::size;
  std::vector<char> out(size_t(bytes), char('a' + check::rank % 20)), in(out.size());
  for (int i = 0; i < times; ++i) {
    MPI_Request request;
    MPI(MPI_Isend(out.data(), bytes, MPI_CHAR, to, i, MPI_COMM_WORLD, &request));
    if (late_us) usleep(useconds_t(late_us));
    MPI(MPI_Recv(in.data(), bytes, MPI_CHAR, from, i % 3 ? i : MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE));
    CHECK_EQ(in.back(), char('a' + from % 20));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
}

}  // namespace mpi_t
