// What the tools interface (MPI_T) must refuse: every bad index, handle, session and place for a
// result has its code, before MPI_Init, between and after MPI_Finalize, and no error handler hears
// of it.
#include "mpi_t.h"

#include <limits.h>

namespace {

using namespace mpi_t;

template <class T>
T junk(uintptr_t value) {
  return reinterpret_cast<T>(value);
}
constexpr uintptr_t junk_values[] = {0,          2,          7,           4096,
                                     0x7fffffff, 0x80000000, 0x1ffffffff, ~uintptr_t(0)};
constexpr int junk_indices[] = {-1, INT_MIN, INT_MAX, 100000};

void on_error(MPI_Comm*, int*, ...) {
  check::fail(__FILE__, __LINE__, "an error handler heard of it");
}

void bad_counters() {
  const Counters counters;
  Counters other;
  Value value = 77;
  MPI_T_pvar_handle handle = counters.handle("bytes_sent");
  const MPI_T_pvar_session session = counters.session;
  EXPECT_CODE(MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_pvar_start(session, handle));
  EXPECT_CODE(MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_pvar_stop(session, handle));
  EXPECT_CODE(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_reset(session, handle));
  EXPECT_CODE(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_write(session, handle, &value));
  EXPECT_CODE(MPI_T_ERR_PVAR_NO_ATOMIC, MPI_T_pvar_readreset(session, handle, &value));
  // All of those for which it is possible: none.
  MPI(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
  MPI(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
  MPI(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &value));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_pvar_read(session, handle, nullptr));
  // A handle of another session.
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(other.session, handle, &value));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_free(other.session, &handle));
  for (const uintptr_t bad : junk_values) {
    auto bad_handle = junk<MPI_T_pvar_handle>(bad);
    auto bad_session = junk<MPI_T_pvar_session>(bad);
    EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, bad_handle, &value));
    EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_start(session, bad_handle));
    EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_reset(session, bad_handle));
    EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_write(session, bad_handle, &value));
    EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_readreset(session, bad_handle, &value));
    EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_free(session, &bad_handle));
    EXPECT_CODE(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(bad_session, handle, &value));
    EXPECT_CODE(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_stop(bad_session, MPI_T_PVAR_ALL_HANDLES));
    EXPECT_CODE(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_session_free(&bad_session));
    int count = -1;
    EXPECT_CODE(MPI_T_ERR_INVALID_SESSION,
                MPI_T_pvar_handle_alloc(bad_session, 0, nullptr, &handle, &count));
  }
  // The handles of the one are no session of the other sort, nor an object of MPI.
  EXPECT_CODE(MPI_T_ERR_INVALID_SESSION,
              MPI_T_pvar_read(junk<MPI_T_pvar_session>(uintptr_t(handle)), handle, &value));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE,
              MPI_T_pvar_read(session, junk<MPI_T_pvar_handle>(uintptr_t(session)), &value));
  int count = -1;
  for (const int bad : junk_indices) {
    MPI_T_pvar_handle made = nullptr;
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX,
                MPI_T_pvar_handle_alloc(session, bad, nullptr, &made, &count));
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX,
                MPI_T_pvar_get_info(bad, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr));
  }
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_pvar_handle_alloc(session, 0, nullptr, nullptr, &count));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_pvar_handle_alloc(session, 0, nullptr, &handle, nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_pvar_session_create(nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_pvar_session_free(nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_pvar_get_num(nullptr));
  CHECK_EQ(value, 77);
  // Freed: the handle, then its session with all others.
  MPI_T_pvar_handle freed = other.handles[0], stale = freed;
  MPI(MPI_T_pvar_handle_free(other.session, &freed));
  CHECK(freed == MPI_T_PVAR_HANDLE_NULL);
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(other.session, stale, &value));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_free(other.session, &stale));
  MPI_T_pvar_session stale_session = other.session;
  MPI(MPI_T_pvar_session_free(&other.session));
  CHECK(other.session == MPI_T_PVAR_SESSION_NULL);
  EXPECT_CODE(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_read(stale_session, other.handles[1], &value));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, other.handles[1], &value));
  EXPECT_CODE(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_session_free(&stale_session));
}

void bad_options() {
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  int count = -1;
  MPI(MPI_T_cvar_handle_alloc(0, nullptr, &handle, &count));
  int value = 77;
  EXPECT_CODE(MPI_T_ERR_CVAR_SET_NEVER, MPI_T_cvar_write(handle, &value));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_cvar_read(handle, nullptr));
  for (const uintptr_t bad : junk_values) {
    auto bad_handle = junk<MPI_T_cvar_handle>(bad);
    EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(bad_handle, &value));
    EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_write(bad_handle, &value));
    EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_handle_free(&bad_handle));
    auto bad_enum = junk<MPI_T_enum>(bad);
    EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_enum_get_info(bad_enum, &count, nullptr, nullptr));
    EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE,
                MPI_T_enum_get_item(bad_enum, 0, &count, nullptr, nullptr));
  }
  for (const int bad : junk_indices) {
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_handle_alloc(bad, nullptr, &handle, &count));
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX,
                MPI_T_cvar_get_info(bad, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                    nullptr, nullptr, nullptr));
  }
  EXPECT_CODE(MPI_T_ERR_INVALID_INDEX,
              MPI_T_cvar_handle_alloc(cvar_count(), nullptr, &handle, &count));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_cvar_handle_alloc(0, nullptr, nullptr, &count));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_cvar_handle_free(nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_cvar_get_num(nullptr));
  CHECK_EQ(value, 77);
  MPI_T_cvar_handle stale = handle;
  MPI(MPI_T_cvar_handle_free(&handle));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(stale, &value));
}

void bad_categories() {
  int number = 77, index = 0;
  for (const int bad : junk_indices) {
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX,
                MPI_T_category_get_info(bad, nullptr, nullptr, nullptr, nullptr, &number, nullptr,
                                        nullptr));
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_cvars(bad, 1, &index));
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_pvars(bad, 1, &index));
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_events(bad, 1, &index));
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_categories(bad, 1, &index));
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_num_events(bad, &number));
  }
  CHECK_EQ(number, 77);
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_category_changed(nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_category_get_num(nullptr));
}

void never(MPI_T_event_instance, MPI_T_event_registration, MPI_T_cb_safety, void*) {
  check::fail(__FILE__, __LINE__, "a callback of no event was called");
}

void bad_event_types() {
  int number = 77, events = 0, sources = 0;
  MPI(MPI_T_event_get_num(&events));
  MPI(MPI_T_source_get_num(&sources));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_get_num(nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_source_get_num(nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID_NAME, MPI_T_event_get_index("headway_event", &number));
  EXPECT_CODE(MPI_T_ERR_INVALID_NAME, MPI_T_event_get_index("", &number));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_get_index(nullptr, &number));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_get_index("headway_wait_began", nullptr));
  MPI_Count ticks = 77;
  MPI_T_event_registration registration = nullptr;
  for (const int bad : junk_indices) {
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX,
                MPI_T_event_get_info(bad, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                     nullptr, nullptr, nullptr, nullptr, nullptr));
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX,
                MPI_T_event_handle_alloc(bad, nullptr, MPI_INFO_NULL, &registration));
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX,
                MPI_T_source_get_info(bad, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                      nullptr, nullptr));
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_source_get_timestamp(bad, &ticks));
  }
  EXPECT_CODE(MPI_T_ERR_INVALID_INDEX,
              MPI_T_event_handle_alloc(events, nullptr, MPI_INFO_NULL, &registration));
  EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_source_get_timestamp(sources, &ticks));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_source_get_timestamp(0, nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_handle_alloc(0, nullptr, MPI_INFO_NULL, nullptr));
  for (const uintptr_t bad : {uintptr_t(7), uintptr_t(0x7fffffff), ~uintptr_t(0)}) {
    EXPECT_CODE(MPI_T_ERR_INVALID,
                MPI_T_event_handle_alloc(0, nullptr, junk<MPI_Info>(bad), &registration));
  }
  CHECK(registration == nullptr);
  CHECK_EQ(number, 77);
  CHECK_EQ(ticks, 77);
  // Fewer elements than none.
  int elements = -3;
  MPI(MPI_T_event_get_info(0, nullptr, nullptr, nullptr, nullptr, nullptr, &elements, nullptr,
                           nullptr, nullptr, nullptr, nullptr));
  CHECK(elements > 0);
}

void bad_event_handles() {
  MPI_Info info = MPI_INFO_NULL;
  int number = 77;
  MPI_Count ticks = 77;
  const MPI_T_cb_safety safety = MPI_T_CB_REQUIRE_NONE;
  for (const uintptr_t bad : junk_values) {
    auto none = junk<MPI_T_event_registration>(bad);
    auto nothing = junk<MPI_T_event_instance>(bad);
    const int codes[] = {
        MPI_T_event_handle_free(none, nullptr, nullptr),
        MPI_T_event_handle_set_info(none, info),
        MPI_T_event_handle_get_info(none, &info),
        MPI_T_event_register_callback(none, safety, info, nullptr, nullptr),
        MPI_T_event_callback_set_info(none, safety, info),
        MPI_T_event_callback_get_info(none, safety, &info),
        MPI_T_event_set_dropped_handler(none, nullptr),
        MPI_T_event_read(nothing, 0, &number),
        MPI_T_event_copy(nothing, &number),
        MPI_T_event_get_timestamp(nothing, &ticks),
        MPI_T_event_get_source(nothing, &number),
    };
    for (const int code : codes) CHECK_EQ(code, MPI_T_ERR_INVALID_HANDLE);
  }
  MPI_T_event_registration registration = nullptr;
  MPI(MPI_T_event_handle_alloc(0, nullptr, MPI_INFO_NULL, &registration));
  // No level of safety is called so, and no info object.
  for (const int level : {1, 2, 0x07, 0x3e}) {
    const auto bad = static_cast<MPI_T_cb_safety>(level);
    EXPECT_CODE(MPI_T_ERR_INVALID,
                MPI_T_event_register_callback(registration, bad, MPI_INFO_NULL, nullptr, never));
    EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_callback_set_info(registration, bad, info));
    EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_callback_get_info(registration, bad, &info));
  }
  const auto bad_info = junk<MPI_Info>(0x7fffffff);
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_handle_set_info(registration, bad_info));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_handle_get_info(registration, nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID,
              MPI_T_event_register_callback(registration, safety, bad_info, nullptr, never));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_callback_get_info(registration, safety, &info));
  MPI(MPI_T_event_register_callback(registration, safety, MPI_INFO_NULL, nullptr, never));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_callback_set_info(registration, safety, bad_info));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_callback_get_info(registration, safety, nullptr));
  // One that is none any more.
  MPI(MPI_T_event_register_callback(registration, safety, MPI_INFO_NULL, nullptr, nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_callback_set_info(registration, safety, info));
  MPI(MPI_T_event_set_dropped_handler(registration, nullptr));
  // A registration is no instance, and no handle of another sort.
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE,
              MPI_T_event_read(junk<MPI_T_event_instance>(uintptr_t(registration)), 0, &number));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE,
              MPI_T_cvar_read(junk<MPI_T_cvar_handle>(uintptr_t(registration)), &number));
  MPI(MPI_T_event_handle_free(registration, nullptr, nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_free(registration, nullptr, nullptr));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE,
              MPI_T_event_register_callback(registration, safety, info, nullptr, never));
  CHECK(info == MPI_INFO_NULL);
  CHECK_EQ(number, 77);
  CHECK_EQ(ticks, 77);
}

// Every code is a class of its own, with its name in its text.
void error_texts() {
  const std::map<int, const char*> names = {
      {MPI_T_ERR_INVALID, "MPI_T_ERR_INVALID"},
      {MPI_T_ERR_INVALID_INDEX, "MPI_T_ERR_INVALID_INDEX"},
      {MPI_T_ERR_INVALID_SESSION, "MPI_T_ERR_INVALID_SESSION"},
      {MPI_T_ERR_CVAR_SET_NEVER, "MPI_T_ERR_CVAR_SET_NEVER"},
      {MPI_T_ERR_PVAR_NO_ATOMIC, "MPI_T_ERR_PVAR_NO_ATOMIC"},
      {MPI_T_ERR_NOT_INITIALIZED, "MPI_T_ERR_NOT_INITIALIZED"}};
  for (const auto& [code, name] : names) {
    CHECK_EQ(check::class_of(code), code);
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, name) != nullptr);
  }
}

// Errors of tools are told to nobody: neither to the program's handler nor to one that ends the
// job.
void handlers() {
  MPI_Errhandler handler, former;
  MPI(MPI_Comm_create_errhandler(on_error, &handler));
  MPI(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &former));
  for (const MPI_Errhandler one : {handler, MPI_ERRORS_ARE_FATAL}) {
    MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, one));
    MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, one));
    EXPECT_CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_handle_alloc(-1, nullptr, nullptr, nullptr));
    EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_cvar_get_num(nullptr));
  }
  MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, former));
  MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, former));
  MPI(MPI_Errhandler_free(&former));
  MPI(MPI_Errhandler_free(&handler));
}

void outside_mpi(const char* when) {
  check::running = when;
  int provided = 0;
  MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  bad_counters();
  bad_options();
  bad_categories();
  bad_event_types();
  bad_event_handles();
  error_texts();
}

}  // namespace

int main(int argc, char** argv) {
  outside_mpi("before_init");
  const int code = check::main(argc, argv,
                               {{"bad_counters", bad_counters},
                                {"bad_options", bad_options},
                                {"bad_categories", bad_categories},
                                {"bad_event_types", bad_event_types},
                                {"bad_event_handles", bad_event_handles},
                                {"error_texts", error_texts},
                                {"handlers", handlers}});
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) outside_mpi("after_finalize");
  return code;
}
