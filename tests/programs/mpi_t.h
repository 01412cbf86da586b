// What the programs for the tools interface (MPI_T) share: the descriptions of counters and
// options, one session with handles of all counters, values of options. Thread: any. Owner: each
// program. Invariant: a call that fails ends the job with its line.
#pragma once
#include <map>

#include "check.h"

namespace mpi_t {

using Value = unsigned long long;

// The very code: those of MPI_T are classes.
#define EXPECT_CODE(wanted, call) CHECK_EQ(call, wanted)

struct Pvar {
  std::string name, help;
  int verbosity = 0, pvar_class = 0, bind = 0, readonly = 0, continuous = 0, atomic = 1;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum enumtype = MPI_T_ENUM_NULL;
};
struct Cvar {
  std::string name, help;
  int verbosity = 0, bind = 0, scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum enumtype = MPI_T_ENUM_NULL;
};

inline constexpr int room = 300;

inline int pvar_count() {
  int n = -1;
  MPI(MPI_T_pvar_get_num(&n));
  return n;
}
inline int cvar_count() {
  int n = -1;
  MPI(MPI_T_cvar_get_num(&n));
  return n;
}
inline int category_count() {
  int n = -1;
  MPI(MPI_T_category_get_num(&n));
  return n;
}

inline Pvar pvar(int index) {
  Pvar p;
  char name[room], help[room];
  int name_room = room, help_room = room;
  MPI(MPI_T_pvar_get_info(index, name, &name_room, &p.verbosity, &p.pvar_class, &p.type,
                          &p.enumtype, help, &help_room, &p.bind, &p.readonly, &p.continuous,
                          &p.atomic));
  p.name = name;
  p.help = help;
  CHECK_EQ(name_room, p.name.size() + 1);
  CHECK_EQ(help_room, p.help.size() + 1);
  return p;
}

inline Cvar cvar(int index) {
  Cvar c;
  char name[room], help[room];
  int name_room = room, help_room = room;
  MPI(MPI_T_cvar_get_info(index, name, &name_room, &c.verbosity, &c.type, &c.enumtype, help,
                          &help_room, &c.bind, &c.scope));
  c.name = name;
  c.help = help;
  CHECK_EQ(name_room, c.name.size() + 1);
  CHECK_EQ(help_room, c.help.size() + 1);
  return c;
}

// One session with a handle of every counter.
class Counters {
 public:
  Counters() {
    MPI(MPI_T_pvar_session_create(&session));
    CHECK(session != MPI_T_PVAR_SESSION_NULL);
    handles.resize(size_t(pvar_count()));
    for (int i = 0; i < int(handles.size()); ++i) {
      int count = -1;
      MPI(MPI_T_pvar_handle_alloc(session, i, nullptr, &handles[size_t(i)], &count));
      CHECK(handles[size_t(i)] != MPI_T_PVAR_HANDLE_NULL);
      CHECK_EQ(count, 1);
      index[pvar(i).name] = size_t(i);
    }
  }
  ~Counters() {
    if (session != MPI_T_PVAR_SESSION_NULL) MPI(MPI_T_pvar_session_free(&session));
  }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  MPI_T_pvar_handle handle(const std::string& name) const {
    const auto found = index.find("headway_" + name);
    if (found == index.end()) check::fail(__FILE__, __LINE__, "no counter %s", name.c_str());
    return handles[found->second];
  }
  Value read(const std::string& name) const {
    Value value = ~Value(0);
    MPI(MPI_T_pvar_read(session, handle(name), &value));
    return value;
  }

  MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  std::vector<MPI_T_pvar_handle> handles;
  std::map<std::string, size_t> index;
};

template <class T>
T read_option(const char* name) {
  int index = -1, count = -1;
  MPI(MPI_T_cvar_get_index(name, &index));
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  MPI(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count));
  T value{};
  if constexpr (std::is_same_v<T, std::string>) {
    CHECK(cvar(index).type == MPI_CHAR);
    std::vector<char> text(static_cast<size_t>(count), '#');
    MPI(MPI_T_cvar_read(handle, text.data()));
    CHECK(memchr(text.data(), '\0', text.size()) != nullptr);
    value = text.data();
  } else {
    CHECK(cvar(index).type == (sizeof(T) == sizeof(int) ? MPI_INT : MPI_UNSIGNED_LONG_LONG));
    CHECK_EQ(count, 1);
    MPI(MPI_T_cvar_read(handle, &value));
  }
  MPI(MPI_T_cvar_handle_free(&handle));
  CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
  return value;
}

// The name of what a choice or a switch is set to.
inline std::string read_choice(const char* name) {
  int index = -1;
  MPI(MPI_T_cvar_get_index(name, &index));
  const MPI_T_enum type = cvar(index).enumtype;
  CHECK(type != MPI_T_ENUM_NULL);
  const int set = read_option<int>(name);
  int items = 0, length = 0;
  MPI(MPI_T_enum_get_info(type, &items, nullptr, &length));
  for (int i = 0; i < items; ++i) {
    char item[room];
    int item_room = room, value = -1;
    MPI(MPI_T_enum_get_item(type, i, &value, item, &item_room));
    if (value == set) return item;
  }
  check::fail(__FILE__, __LINE__, "%s is %d, which has no name", name, set);
}

}  // namespace mpi_t
