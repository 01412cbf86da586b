// The tools interface (MPI_T): options as control variables, counters as performance variables and
// how they move, categories, texts, threads; before MPI_Init, between and after MPI_Finalize.
#include "mpi_t.h"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

namespace {

using namespace mpi_t;

// --- what every counter and option says of itself ---

void list_counters() {
  std::set<std::string> names;
  std::set<int> classes;
  CHECK(pvar_count() > 50);
  for (int i = 0; i < pvar_count(); ++i) {
    const Pvar p = pvar(i);
    CHECK(p.name.rfind("headway_", 0) == 0);
    CHECK(names.insert(p.name).second);
    CHECK(p.help.size() > 10);
    CHECK(p.verbosity == MPI_T_VERBOSITY_USER_BASIC || p.verbosity == MPI_T_VERBOSITY_TUNER_BASIC ||
          p.verbosity == MPI_T_VERBOSITY_MPIDEV_BASIC);
    classes.insert(p.pvar_class);
    CHECK_EQ(p.bind, MPI_T_BIND_NO_OBJECT);
    CHECK_EQ(p.readonly, 1);
    CHECK_EQ(p.continuous, 1);
    CHECK_EQ(p.atomic, 0);
    CHECK(p.type == MPI_UNSIGNED_LONG_LONG);
    CHECK(p.enumtype == MPI_T_ENUM_NULL);
    const bool is_time = p.name.size() > 3 && p.name.substr(p.name.size() - 3) == "_ns";
    CHECK_EQ(p.pvar_class == MPI_T_PVAR_CLASS_TIMER, is_time);
    int index = -1;
    MPI(MPI_T_pvar_get_index(p.name.c_str(), p.pvar_class, &index));
    CHECK_EQ(index, i);
    EXPECT_CODE(MPI_T_ERR_INVALID_NAME,
                MPI_T_pvar_get_index(p.name.c_str(), MPI_T_PVAR_CLASS_STATE, &index));
    // Nothing but the name is wanted, and nothing at all.
    MPI(MPI_T_pvar_get_info(i, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                            nullptr, nullptr, nullptr, nullptr, nullptr));
  }
  CHECK_EQ(classes.size(), 5);
  int index = -1;
  EXPECT_CODE(MPI_T_ERR_INVALID_NAME,
              MPI_T_pvar_get_index("released", MPI_T_PVAR_CLASS_COUNTER, &index));
  EXPECT_CODE(MPI_T_ERR_INVALID_NAME, MPI_T_pvar_get_index("", MPI_T_PVAR_CLASS_COUNTER, &index));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_pvar_get_index(nullptr, MPI_T_PVAR_CLASS_COUNTER, &index));
  EXPECT_CODE(MPI_T_ERR_INVALID,
              MPI_T_pvar_get_index("headway_released", MPI_T_PVAR_CLASS_COUNTER, nullptr));
}

void list_enum(MPI_T_enum type, const std::string& name) {
  int items = 0, name_room = room;
  char text[room];
  MPI(MPI_T_enum_get_info(type, &items, text, &name_room));
  CHECK_EQ(std::string(text), name);
  CHECK(items >= 2);
  std::set<std::string> seen;
  for (int i = 0; i < items; ++i) {
    int value = -1, item_room = room;
    MPI(MPI_T_enum_get_item(type, i, &value, text, &item_room));
    CHECK_EQ(value, i);
    CHECK_EQ(item_room, strlen(text) + 1);
    CHECK(strchr(text, '|') == nullptr);
    CHECK(seen.insert(text).second);
  }
  int value = -1, item_room = room;
  EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_enum_get_item(type, items, &value, text, &item_room));
  EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_enum_get_item(type, -1, &value, text, &item_room));
  MPI(MPI_T_enum_get_item(type, 0, nullptr, nullptr, nullptr));
}

// What is set in the environment is what a tool sees.
void compare_with_environment(const Cvar& c) {
  const char* set = getenv(c.name.c_str());
  if (set == nullptr || *set == '\0') return;
  if (c.type == MPI_CHAR) {
    CHECK_EQ(read_option<std::string>(c.name.c_str()), set);
  } else if (c.enumtype != MPI_T_ENUM_NULL) {
    CHECK_EQ(read_choice(c.name.c_str()), set);
  } else if (strspn(set, "0123456789") == strlen(set)) {
    CHECK_EQ(read_option<Value>(c.name.c_str()), strtoull(set, nullptr, 10));
  }
}

void list_options() {
  std::set<std::string> names;
  CHECK(cvar_count() > 10);
  for (int i = 0; i < cvar_count(); ++i) {
    const Cvar c = cvar(i);
    CHECK(c.name.rfind("HEADWAY_", 0) == 0);
    CHECK(names.insert(c.name).second);
    CHECK(c.help.size() > 10);
    CHECK_EQ(c.bind, MPI_T_BIND_NO_OBJECT);
    CHECK_EQ(c.scope, MPI_T_SCOPE_READONLY);
    CHECK_EQ(c.type == MPI_INT, c.enumtype != MPI_T_ENUM_NULL);
    if (c.enumtype != MPI_T_ENUM_NULL) list_enum(c.enumtype, c.name);
    int index = -1;
    MPI(MPI_T_cvar_get_index(c.name.c_str(), &index));
    CHECK_EQ(index, i);
    MPI(MPI_T_cvar_get_info(i, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                            nullptr, nullptr));
    compare_with_environment(c);
  }
  int index = -1;
  EXPECT_CODE(MPI_T_ERR_INVALID_NAME, MPI_T_cvar_get_index("SHM", &index));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_cvar_get_index(nullptr, &index));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_cvar_get_index("HEADWAY_SHM", nullptr));
}

void list_categories() {
  std::set<std::string> names;
  int of_events_in_all = -1;
  MPI(MPI_T_event_get_num(&of_events_in_all));
  std::vector<int> cvars(size_t(cvar_count()), 0), pvars(size_t(pvar_count()), 0);
  std::vector<int> events_seen(size_t(of_events_in_all), 0);
  for (int i = 0; i < category_count(); ++i) {
    char name[room], help[room];
    int name_room = room, help_room = room, of_cvars = -1, of_pvars = -1, of_categories = -1;
    MPI(MPI_T_category_get_info(i, name, &name_room, help, &help_room, &of_cvars, &of_pvars,
                                &of_categories));
    CHECK(names.insert(name).second);
    CHECK(of_cvars + of_pvars > 0);
    CHECK_EQ(of_categories, 0);
    int index = -1, events = -1;
    MPI(MPI_T_category_get_index(name, &index));
    CHECK_EQ(index, i);
    MPI(MPI_T_category_get_num_events(i, &events));
    CHECK(events >= 0);
    // One more than there are: it stays as it was. Then fewer.
    std::vector<int> found(size_t(std::max({of_cvars, of_pvars, events}) + 1), -5);
    MPI(MPI_T_category_get_pvars(i, of_pvars + 1, found.data()));
    CHECK_EQ(found[size_t(of_pvars)], -5);
    for (int k = 0; k < of_pvars; ++k) ++pvars.at(size_t(found[size_t(k)]));
    std::fill(found.begin(), found.end(), -5);
    MPI(MPI_T_category_get_cvars(i, of_cvars + 1, found.data()));
    CHECK_EQ(found[size_t(of_cvars)], -5);
    for (int k = 0; k < of_cvars; ++k) ++cvars.at(size_t(found[size_t(k)]));
    if (of_pvars > 1) {
      std::fill(found.begin(), found.end(), -5);
      MPI(MPI_T_category_get_pvars(i, 1, found.data()));
      CHECK(found[0] >= 0);
      CHECK_EQ(found[1], -5);
    }
    MPI(MPI_T_category_get_cvars(i, 0, nullptr));
    MPI(MPI_T_category_get_categories(i, int(found.size()), found.data()));
    std::fill(found.begin(), found.end(), -5);
    MPI(MPI_T_category_get_events(i, events + 1, found.data()));
    CHECK_EQ(found[size_t(events)], -5);
    for (int k = 0; k < events; ++k) ++events_seen.at(size_t(found[size_t(k)]));
    EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_category_get_cvars(i, -1, found.data()));
    EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_category_get_pvars(i, 1, nullptr));
    EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_category_get_events(i, 1, nullptr));
    MPI(MPI_T_category_get_info(i, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
  }
  for (const int times : cvars) CHECK_EQ(times, 1);
  for (const int times : pvars) CHECK_EQ(times, 1);
  for (const int times : events_seen) CHECK_EQ(times, 1);
  for (const char* name : {"progress", "transports", "matching", "early_release", "collectives"}) {
    CHECK(names.count(std::string("headway_") + name) == 1);
  }
  int index = -1, first = -1, second = -2;
  EXPECT_CODE(MPI_T_ERR_INVALID_NAME, MPI_T_category_get_index("headway_", &index));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_category_get_index(nullptr, &index));
  MPI(MPI_T_category_changed(&first));
  MPI(MPI_T_category_changed(&second));
  CHECK_EQ(first, second);
}

// --- the rules for texts ---

void texts() {
  const std::string whole = pvar(0).name;
  const int needed = int(whole.size()) + 1;
  for (int given = 0; given <= needed + 1; ++given) {
    char text[room];
    memset(text, '#', sizeof text);
    int length = given;
    MPI(MPI_T_pvar_get_info(0, text, &length, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                            nullptr, nullptr, nullptr, nullptr));
    CHECK_EQ(length, needed);
    if (given == 0) {
      CHECK_UNTOUCHED(text, sizeof text, '#');
      continue;
    }
    const std::string cut = whole.substr(0, size_t(given) - 1);
    CHECK_EQ(std::string(text), cut);
    CHECK_UNTOUCHED(text + cut.size() + 1, sizeof text - cut.size() - 1, '#');
  }
  // Without a buffer the length alone; without a length nothing.
  int length = 77;
  MPI(MPI_T_pvar_get_info(0, nullptr, &length, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                          nullptr, nullptr, nullptr, nullptr));
  CHECK_EQ(length, needed);
  char text[room];
  memset(text, '#', sizeof text);
  MPI(MPI_T_cvar_get_info(0, text, nullptr, nullptr, nullptr, nullptr, text, nullptr, nullptr,
                          nullptr));
  CHECK_UNTOUCHED(text, sizeof text, '#');
  length = 4;
  MPI(MPI_T_category_get_info(0, text, &length, nullptr, nullptr, nullptr, nullptr, nullptr));
  CHECK_EQ(std::string(text), "hea");
}

// --- counters move ---

// With early release a receive may be over for its user before the message is there, and a page be
// open before its range is.
void reach(const Counters& counters, const char* name, Value value) {
  for (int i = 0; i < 5000 && counters.read(name) < value; ++i) usleep(1000);
}

// Sends around the ring: `small` messages without a handshake, `large` with one.
void around(int small, int large, int bytes) {
  const int to = (check::rank + 1) % check::size;
  const int from = (check::rank + check::size - 1) % check::size;
  std::vector<char> out(size_t(bytes), 'x'), in(size_t(bytes) * size_t(small + large));
  std::vector<MPI_Request> requests(size_t(small + large));
  for (int i = 0; i < small + large; ++i) {
    MPI(MPI_Irecv(&in[size_t(i) * size_t(bytes)], i < small ? 8 : bytes, MPI_CHAR, from, 3,
                  MPI_COMM_WORLD, &requests[size_t(i)]));
  }
  for (int i = 0; i < small + large; ++i) {
    MPI_Request send;
    MPI(MPI_Isend(out.data(), i < small ? 8 : bytes, MPI_CHAR, to, 3, MPI_COMM_WORLD, &send));
    MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
  }
  MPI(MPI_Waitall(small + large, requests.data(), MPI_STATUSES_IGNORE));
}

void messages() {
  constexpr int small = 20, large = 3, bytes = 300'000;
  const Counters counters;
  std::map<std::string, Value> before;
  for (const char* name : {"messages_sent", "messages_received", "bytes_sent", "bytes_received",
                           "eager_sent", "handshakes", "claims", "tcp_bytes_out", "tcp_bytes_in"}) {
    before[name] = counters.read(name);
  }
  const auto moved = [&](const char* name) { return counters.read(name) - before[name]; };
  around(small, large, bytes);
  const Value sum = small * 8 + large * Value(bytes);
  CHECK_EQ(moved("messages_sent"), small + large);
  CHECK_EQ(moved("bytes_sent"), sum);
  reach(counters, "messages_received", before["messages_received"] + small + large);
  CHECK_EQ(moved("messages_received"), small + large);
  CHECK_EQ(moved("bytes_received"), sum);
  if (check::size == 1) return;
  CHECK_EQ(moved("eager_sent"), small);
  CHECK_EQ(moved("handshakes") + moved("claims"), large);
  const bool tcp = read_choice("HEADWAY_SHM") == "off";
  // A send that was copied aside may leave after its wait.
  if (tcp) reach(counters, "tcp_bytes_out", before["tcp_bytes_out"] + sum + 1);
  CHECK_EQ(moved("tcp_bytes_out") > sum, tcp);
  CHECK_EQ(moved("tcp_bytes_in") > sum, tcp);
  // A blocking send takes a way of its own.
  before["messages_sent"] = counters.read("messages_sent");
  before["eager_sent"] = counters.read("eager_sent");
  char byte = 0;
  MPI_Request request;
  MPI(MPI_Irecv(&byte, 1, MPI_CHAR, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &request));
  char out = 1;
  MPI(MPI_Send(&out, 1, MPI_CHAR, (check::rank + 1) % check::size, 4, MPI_COMM_WORLD));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_EQ(moved("messages_sent"), 1);
  CHECK_EQ(moved("eager_sent"), 1);
}

void levels() {
  const Counters counters;
  const Value posted = counters.read("posted_receives");
  const Value unexpected = counters.read("unexpected_messages");
  int in[3] = {}, out = 5;
  MPI_Request requests[3];
  for (int i = 0; i < 3; ++i) {
    MPI(MPI_Irecv(&in[i], 1, MPI_INT, check::rank, 10 + i, MPI_COMM_WORLD, &requests[i]));
  }
  CHECK_EQ(counters.read("posted_receives"), posted + 3);
  CHECK(counters.read("posted_longest") >= posted + 3);
  for (int i = 0; i < 3; ++i) MPI(MPI_Send(&out, 1, MPI_INT, check::rank, 10 + i, MPI_COMM_WORLD));
  MPI(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
  CHECK_EQ(counters.read("posted_receives"), posted);
  MPI(MPI_Send(&out, 1, MPI_INT, check::rank, 20, MPI_COMM_WORLD));
  MPI(MPI_Probe(check::rank, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  // Messages of other ranks' next steps may lie there, too.
  CHECK(counters.read("unexpected_messages") >= unexpected + 1);
  CHECK(counters.read("unexpected_longest") >= unexpected + 1);
  MPI(MPI_Recv(in, 1, MPI_INT, check::rank, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

void collectives() {
  const Counters counters;
  const Value before = counters.read("collectives");
  int in = 1, out = 0;
  for (int i = 0; i < 4; ++i) {
    MPI(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
  MPI_Request request;
  MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_EQ(counters.read("collectives"), before + 9);
}

// Rank 1 waits for a message that is sent late: with early release `always` it goes on before.
void releases() {
  const std::string mode = read_choice("HEADWAY_EARLY_RELEASE");
  bool traps = prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0) == 0;
#ifdef __SANITIZE_THREAD__
  traps = false;  // its own thread is not ours to trap: nothing is closed
#endif
  constexpr int bytes = 1 << 20;
  const Counters counters;
  const Value released = counters.read("released"), foreseen = counters.read("foreseen");
  const Value faults = counters.read("page_faults"), waited = counters.read("page_wait_ns");
  std::vector<char> data(bytes, 'd');
  if (check::rank == 0) {
    usleep(100'000);
    MPI(MPI_Send(data.data(), bytes, MPI_CHAR, 1, 6, MPI_COMM_WORLD));
  } else if (check::rank == 1) {
    memset(data.data(), 'r', data.size());
    MPI(MPI_Recv(data.data(), bytes, MPI_CHAR, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    const Value after = counters.read("released");
    for (const char byte : data) CHECK_EQ(byte, 'd');
    if (mode == "always" && traps) {
      CHECK_EQ(after, released + 1);
      CHECK_EQ(counters.read("foreseen"), foreseen + 1);
      CHECK(counters.read("page_faults") > faults);
      reach(counters, "page_wait_ns", waited + 1);
      CHECK(counters.read("page_wait_ns") > waited);
    } else if (mode == "off") {
      CHECK_EQ(after, 0);
    }
  }
}

// The last receives of long reductions are released, too: nothing follows them. (In shared memory
// both ranks move the last parts at one time: mostly nothing is left to wait for.)
void releases_of_reductions() {
  const bool tcp = read_choice("HEADWAY_SHM") == "off";
  const std::string mode = read_choice("HEADWAY_EARLY_RELEASE");
  bool traps = prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0) == 0;
#ifdef __SANITIZE_THREAD__
  traps = false;
#endif
  constexpr int count = 1 << 18, rounds = 10;
  const Counters counters;
  const Value before = counters.read("released");
  std::vector<int> in(count), out(count);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < count; ++i) in[size_t(i)] = i + round;
    MPI(MPI_Allreduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < count; ++i) CHECK_EQ(out[size_t(i)], check::size * (i + round));
  }
  int64_t own = int64_t(counters.read("released") - before), all = 0;
  MPI(MPI_Allreduce(&own, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
  if (mode == "always" && traps && tcp) CHECK(all > 0);
}

// Reads of any thread, while messages move and other threads come and go with sessions.
void threads() {
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  const auto read_all = [&] {
    const Counters mine;
    std::vector<Value> last(mine.handles.size(), 0);
    while (!stop.load()) {
      for (size_t i = 0; i < mine.handles.size(); ++i) {
        Value value = 0;
        MPI(MPI_T_pvar_read(mine.session, mine.handles[i], &value));
        const int kind = pvar(int(i)).pvar_class;
        if (kind != MPI_T_PVAR_CLASS_LEVEL && value < last[i]) {
          check::fail(__FILE__, __LINE__, "%s fell", pvar(int(i)).name.c_str());
        }
        last[i] = value;
      }
      ++rounds;
    }
  };
  const auto come_and_go = [&] {
    while (!stop.load()) {
      const Counters mine;
      (void)mine.read("thread_wakes");
      CHECK(read_option<Value>("HEADWAY_SPIN") < 1'000'000'000);
      ++rounds;
    }
  };
  std::thread reader(read_all), visitor(come_and_go);
  for (int i = 0; i < 20 || rounds.load() < 10; ++i) {
    // The number of rounds must be that of the others.
    if (i >= 20) {
      usleep(1000);
    } else {
      around(5, 1, 100'000);
    }
  }
  stop = true;
  reader.join();
  visitor.join();
}

// --- before MPI_Init and after MPI_Finalize ---

void not_open() {
  int number = 0;
  MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
  MPI_T_cvar_handle option = MPI_T_CVAR_HANDLE_NULL;
  const int codes[] = {MPI_T_finalize(),
                       MPI_T_cvar_get_num(&number),
                       MPI_T_pvar_get_num(&number),
                       MPI_T_category_get_num(&number),
                       MPI_T_category_changed(&number),
                       MPI_T_event_get_num(&number),
                       MPI_T_source_get_num(&number),
                       MPI_T_cvar_get_index("HEADWAY_SHM", &number),
                       MPI_T_pvar_session_create(&session),
                       MPI_T_pvar_handle_alloc(session, 0, nullptr, &handle, &number),
                       MPI_T_pvar_read(session, handle, &number),
                       MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES),
                       MPI_T_cvar_handle_alloc(0, nullptr, &option, &number),
                       MPI_T_cvar_read(option, &number),
                       MPI_T_cvar_write(option, &number),
                       MPI_T_enum_get_info(MPI_T_ENUM_NULL, &number, nullptr, nullptr),
                       MPI_T_event_read(nullptr, 0, &number),
                       MPI_T_source_get_timestamp(0, nullptr)};
  for (const int code : codes) CHECK_EQ(code, MPI_T_ERR_NOT_INITIALIZED);
}

void open(int required) {
  int provided = -1;
  MPI(MPI_T_init_thread(required, &provided));
  CHECK_EQ(provided, required);
}

void before_init() {
  check::running = "before_init";
  not_open();
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_init_thread(MPI_THREAD_SINGLE, nullptr));
  not_open();
  open(MPI_THREAD_MULTIPLE);
  open(MPI_THREAD_SINGLE);
  MPI(MPI_T_finalize());
  list_counters();
  list_options();
  list_categories();
  texts();
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  MPI_T_cvar_handle option;
  int count = 0;
  {
    Counters counters;
    for (const auto& [name, i] : counters.index) {
      Value value = 77;
      MPI(MPI_T_pvar_read(counters.session, counters.handles[i], &value));
      CHECK_EQ(value, 0);
    }
    session = counters.session;
    handle = counters.handles[0];
    MPI(MPI_T_cvar_handle_alloc(0, nullptr, &option, &count));
    counters.session = MPI_T_PVAR_SESSION_NULL;  // goes with the interface
  }
  MPI(MPI_T_finalize());
  not_open();
  // Opened again: what was left open is gone.
  open(MPI_THREAD_MULTIPLE);
  Value value = 0;
  EXPECT_CODE(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(session, handle, &value));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(option, &value));
  // Before the start a tool sees what the start would take.
  CHECK(getenv("HEADWAY_CONNECT_TIMEOUT") == nullptr);
  setenv("HEADWAY_CONNECT_TIMEOUT", "12345", 1);
  CHECK_EQ(read_option<Value>("HEADWAY_CONNECT_TIMEOUT"), 12345);
  unsetenv("HEADWAY_CONNECT_TIMEOUT");
  CHECK_EQ(read_option<Value>("HEADWAY_CONNECT_TIMEOUT"), 10'000'000);
}

// After the start it sees what was taken, whatever the environment says.
void taken() {
  setenv("HEADWAY_CONNECT_TIMEOUT", "12345", 1);
  CHECK_EQ(read_option<Value>("HEADWAY_CONNECT_TIMEOUT"), 10'000'000);
  unsetenv("HEADWAY_CONNECT_TIMEOUT");
}

Value sent_at_end = 0;
void at_end() { sent_at_end = Counters().read("messages_sent"); }

void after_finalize() {
  check::running = "after_finalize";
  CHECK(Counters().read("messages_sent") >= sent_at_end);
  CHECK(sent_at_end > 0);
  list_options();
  MPI(MPI_T_finalize());
  not_open();
  open(MPI_THREAD_SINGLE);
  CHECK(Counters().read("messages_sent") >= sent_at_end);
  MPI(MPI_T_finalize());
  EXPECT_CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_finalize());
}

}  // namespace

int main(int argc, char** argv) {
  before_init();
  const int code = check::main(argc, argv,
                               {{"list_counters", list_counters},
                                {"list_options", list_options},
                                {"list_categories", list_categories},
                                {"texts", texts},
                                {"taken", taken},
                                {"messages", messages},
                                {"levels", levels},
                                {"collectives", collectives},
                                {"releases_of_reductions", releases_of_reductions, 2},
                                {"releases", releases, 2},
                                {"threads", threads},
                                {"at_end", at_end}});
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) after_finalize();
  return code;
}
