// Callbacks of events by MPI_T: that call MPI, that free themselves, while other threads come and
// go, until the end of MPI_Finalize; and a call with more events than are kept.
#include <atomic>
#include <thread>

#include "mpi_t_events.h"

namespace {

using namespace mpi_t;

// --- callbacks that do something ---

Heard inner, outer;
bool callback_runs;

// Calls MPI, which makes events of its own: they are handed over later, and this is not entered
// again.
void on_posted_calls_mpi(Instance instance, Registration registration, MPI_T_cb_safety safety,
                         void* data) {
  CHECK(!callback_runs);
  callback_runs = true;
  CHECK_EQ(safety, MPI_T_CB_REQUIRE_NONE);
  on_event(instance, registration, safety, data);
  if (outer.events <= 3) {
    int in = 0, out = 5;
    MPI_Request request;
    MPI(MPI_Irecv(&in, 1, MPI_INT, 0, 77, MPI_COMM_SELF, &request));
    MPI(MPI_Send(&out, 1, MPI_INT, 0, 77, MPI_COMM_SELF));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(in, 5);
  }
  callback_runs = false;
}

void calls_mpi() {
  outer = {};
  listen(outer, "receive_posted", MPI_T_CB_REQUIRE_NONE);
  MPI(MPI_T_event_register_callback(outer.registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL,
                                    &outer, on_posted_calls_mpi));
  int in = 0, out = 6;
  MPI_Request request;
  MPI(MPI_Irecv(&in, 1, MPI_INT, 0, 78, MPI_COMM_SELF, &request));
  MPI(MPI_Send(&out, 1, MPI_INT, 0, 78, MPI_COMM_SELF));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_EQ(in, 6);
  // One, and one each of those that three callbacks have made.
  for (int i = 0; i < 10; ++i) call_mpi();
  CHECK_EQ(outer.events, 4);
  stop(outer);
}

void on_posted_frees(Instance instance, Registration registration, MPI_T_cb_safety safety,
                     void* data) {
  on_event(instance, registration, safety, data);
  auto* heard = static_cast<Heard*>(data);
  MPI(MPI_T_event_handle_free(registration, heard, on_freed));
  CHECK_EQ(heard->freed, 0);  // as long as this runs
  MPI_Count time = 0;
  MPI(MPI_T_event_get_timestamp(instance, &time));  // and the event is there as long
  CHECK_EQ(time, heard->last);
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_handle_free(registration, heard, on_freed));
  // Another one comes, which hears of what happens from now on.
  inner = {};
  listen(inner, "receive_posted", MPI_T_CB_REQUIRE_NONE);
}

void frees_inside() {
  outer = {};
  listen(outer, "receive_posted", MPI_T_CB_REQUIRE_NONE);
  MPI(MPI_T_event_register_callback(outer.registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL,
                                    &outer, on_posted_frees));
  for (int i = 0; i < 3; ++i) {
    int in = 0, out = i;
    MPI_Request request;
    MPI(MPI_Irecv(&in, 1, MPI_INT, 0, 79, MPI_COMM_SELF, &request));
    MPI(MPI_Send(&out, 1, MPI_INT, 0, 79, MPI_COMM_SELF));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  call_mpi();
  CHECK_EQ(outer.events, 1);
  CHECK_EQ(outer.freed, 1);
  CHECK_EQ(inner.events, 2);
  // An instance is nothing when its callback has returned.
  MPI_Count time = -9;
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_get_timestamp(last_instance, &time));
  int source = -9;
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_get_source(last_instance, &source));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_read(last_instance, 0, &time));
  EXPECT_CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_event_copy(last_instance, &time));
  CHECK(time == -9 && source == -9);
  stop(inner);
}

// --- a full ring ---

void fill() {
  constexpr int many = 20'000;
  Heard heard;
  std::vector<MPI_Request> requests(many);
  std::vector<int> in(many, -1);
  for (int i = 0; i < many; ++i) {
    MPI(MPI_Recv_init(&in[size_t(i)], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[size_t(i)]));
  }
  listen(heard, "receive_posted", MPI_T_CB_REQUIRE_NONE);
  const Counters counters;
  const Value dropped = counters.read("tool_events_dropped"), put = counters.read("tool_events");
  // One call with more events than are kept.
  MPI(MPI_Startall(many, requests.data()));
  call_mpi();
  CHECK(heard.events >= 1000 && heard.dropped >= 1000);
  CHECK_EQ(heard.events + heard.dropped, many);
  CHECK_EQ(counters.read("tool_events_dropped") - dropped, heard.dropped);
  CHECK_EQ(counters.read("tool_events") - put, heard.events);
  call_mpi();
  CHECK_EQ(heard.events + heard.dropped, many);  // told once
  for (int i = 0; i < many; ++i) MPI(MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_SELF));
  MPI(MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE));
  for (int i = 0; i < many; ++i) {
    CHECK_EQ(in[size_t(i)], i);
    MPI(MPI_Request_free(&requests[size_t(i)]));
  }
  // There is room again.
  const uint64_t events = heard.events;
  int number = 0;
  MPI_Request request;
  MPI(MPI_Irecv(&number, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request));
  call_mpi();
  CHECK_EQ(heard.events, events + 1);
  MPI(MPI_Send(&number, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
  MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  stop(heard);
}

// --- hints, and other threads ---

void hints() {
  MPI_Info info, used = MPI_INFO_NULL;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "nobody", "knows"));
  Registration registration = nullptr;
  MPI(MPI_T_event_handle_alloc(0, nullptr, info, &registration));
  MPI(MPI_T_event_handle_set_info(registration, info));
  MPI(MPI_T_event_handle_get_info(registration, &used));
  int keys = -1;
  MPI(MPI_Info_get_nkeys(used, &keys));
  CHECK_EQ(keys, 0);
  MPI(MPI_Info_free(&used));
  Heard heard;
  heard.registration = registration;
  heard.index = 0;
  const MPI_T_cb_safety safety = MPI_T_CB_REQUIRE_THREAD_SAFE;
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_callback_get_info(registration, safety, &used));
  EXPECT_CODE(MPI_T_ERR_INVALID, MPI_T_event_callback_set_info(registration, safety, info));
  MPI(MPI_T_event_register_callback(registration, safety, info, &heard, on_event));
  MPI(MPI_T_event_callback_set_info(registration, safety, MPI_INFO_NULL));
  MPI(MPI_T_event_callback_get_info(registration, safety, &used));
  MPI(MPI_Info_free(&used));
  MPI(MPI_Info_free(&info));
  stop(heard);
}

// Registrations of another thread come and go while this one's messages move.
void threads() {
  std::atomic<bool> stops{false};
  std::atomic<int> rounds{0};
  std::thread visitor([&] {
    while (!stops.load()) {
      Registration registration = nullptr;
      MPI(MPI_T_event_handle_alloc(index_of("message_matched"), nullptr, MPI_INFO_NULL,
                                   &registration));
      std::atomic<int> seen{0};
      std::atomic<bool> freed{false};
      struct Both {
        std::atomic<int>* seen;
        std::atomic<bool>* freed;
      } both = {&seen, &freed};
      MPI(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL,
                                        &both,
                                        [](Instance, Registration, MPI_T_cb_safety, void* data) {
                                          Both* const mine = static_cast<Both*>(data);
                                          CHECK(!mine->freed->load());
                                          ++*mine->seen;
                                        }));
      usleep(200);
      MPI(MPI_T_event_handle_free(registration, &both,
                                  [](Registration, MPI_T_cb_safety, void* data) {
                                    static_cast<Both*>(data)->freed->store(true);
                                  }));
      // Its callback may be running: what it uses must stay until this is told.
      while (!freed.load()) usleep(10);
      ++rounds;
    }
  });
  for (int i = 0; i < 20; ++i) around(2000, 10, 0);
  while (rounds.load() < 10) {
    usleep(1000);
    call_mpi();
  }
  stops = true;
  visitor.join();
}

// --- the end of MPI ---

constexpr int first_tag = 8901, second_tag = 8902;
Heard calls_ever, waits_ever, hears_all;
int heard_second = 0;

void with_itself(int tag) {
  int in = -1;
  MPI_Request request;
  MPI(MPI_Isend(&tag, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &request));
  MPI(MPI_Request_free(&request));
  MPI(MPI_Recv(&in, 1, MPI_INT, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK_EQ(in, tag);
}

// Calls MPI whenever it is called. Its second message is told by the next call: MPI_Finalize, which
// goes on when the attribute is deleted.
void on_any_calls_mpi(Instance instance, Registration registration, MPI_T_cb_safety safety,
                      void* data) {
  CHECK_EQ(safety, MPI_T_CB_REQUIRE_NONE);
  on_event(instance, registration, safety, data);
  int rank = -1;
  MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_EQ(rank, check::rank);
  if (data != &calls_ever) return;
  const MPI_Count tag = elements_of(instance, calls_ever.index)[1];
  if (tag == first_tag) with_itself(second_tag);
  heard_second += tag == second_tag;
}

int on_delete(MPI_Comm, int, void*, void*) {
  CHECK_EQ(heard_second, 0);
  with_itself(first_tag);
  CHECK_EQ(heard_second, 0);
  return MPI_SUCCESS;
}

void until_the_end() {
  listen(hears_all, "message_matched", MPI_T_CB_REQUIRE_MPI_RESTRICTED);
  listen(calls_ever, "message_matched", MPI_T_CB_REQUIRE_NONE);
  listen(waits_ever, "wait_began", MPI_T_CB_REQUIRE_NONE);
  for (Heard* heard : {&calls_ever, &waits_ever}) {
    MPI(MPI_T_event_register_callback(heard->registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL,
                                      heard, on_any_calls_mpi));
  }
  int keyval = MPI_KEYVAL_INVALID;
  MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &keyval, nullptr));
  MPI(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr));
  MPI(MPI_Comm_free_keyval(&keyval));
}

// What was before MPI_Finalize was told to all. What it did itself, its barrier, was told where
// nothing of MPI may be called.
void after_the_end() {
  check::running = "after_the_end";
  CHECK_EQ(heard_second, 1);
  CHECK_EQ(hears_all.levels.count(int(MPI_T_CB_REQUIRE_NONE)), 1);
  if (check::size > 1) {
    CHECK_EQ(hears_all.levels.count(int(MPI_T_CB_REQUIRE_MPI_RESTRICTED)), 1);
    CHECK(hears_all.events > calls_ever.events);
  }
  for (Heard* heard : {&calls_ever, &waits_ever, &hears_all}) {
    MPI(MPI_T_event_handle_free(heard->registration, heard, on_freed));
    CHECK_EQ(heard->freed, 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int provided = -1;
  MPI(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
  const int code = check::main(argc, argv,
                               {{"calls_mpi", calls_mpi},
                                {"frees_inside", frees_inside},
                                {"fill", fill},
                                {"hints", hints},
                                {"threads", threads},
                                {"until_the_end", until_the_end}});
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized && calls_ever.registration) after_the_end();
  MPI(MPI_T_finalize());
  return code;
}
