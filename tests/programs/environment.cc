// The library about itself: attributes, versions, clocks, names, Info objects, handles as integers,
// thread levels. With a word SINGLE, FUNNELED, SERIALIZED or MULTIPLE it starts at that level.
#include <unistd.h>

#include <string>
#include <thread>

#include "check.h"

namespace {

int attribute(int key) {
  int* value = nullptr;
  int flag = 0;
  MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
  CHECK(flag);
  CHECK(value != nullptr);
  return *value;
}

void attributes() {
  CHECK(attribute(MPI_TAG_UB) >= 32767);
  int global = attribute(MPI_WTIME_IS_GLOBAL);
  CHECK(global == 0 || global == 1);
  CHECK(attribute(MPI_LASTUSEDCODE) >= MPI_ERR_LASTCODE);
  int io = attribute(MPI_IO);
  CHECK(io == MPI_ANY_SOURCE || io == MPI_PROC_NULL || (io >= 0 && io < check::size));
  int* value = nullptr;
  int flag = 0;
  // These three may have no value, but they must answer.
  MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag));
  MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
  if (flag) CHECK(*value >= check::size);
  MPI(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
  if (flag) CHECK_EQ(*value, 0);
}

void versions() {
  int version = 0, subversion = -1, major = -1, minor = -1, length = 0;
  MPI(MPI_Get_version(&version, &subversion));
  CHECK_EQ(version, 5);
  CHECK_EQ(subversion, 0);
  MPI(MPI_Abi_get_version(&major, &minor));
  CHECK_EQ(major, 1);
  CHECK_EQ(minor, 0);
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  MPI(MPI_Get_library_version(text, &length));
  CHECK_EQ(strlen(text), length);
  CHECK(length > 0);
  for (const std::string& word : check::words) {
    if (word == "expect-headway") CHECK(strstr(text, "Headway") != nullptr);
  }
  MPI_Info info = MPI_INFO_NULL;
  MPI(MPI_Abi_get_info(&info));
  if (info != MPI_INFO_NULL) MPI(MPI_Info_free(&info));
}

void clocks() {
  double tick = MPI_Wtick(), before = MPI_Wtime(), last = before;
  CHECK(tick > 0 && tick < 1e-3);
  for (int i = 0; i < 10000; ++i) {
    double now = MPI_Wtime();
    CHECK(now >= last);
    last = now;
  }
  usleep(20000);
  double slept = MPI_Wtime() - last;
  CHECK(slept >= 0.019 && slept < 5);
}

void processor() {
  char name[MPI_MAX_PROCESSOR_NAME + 8];
  memset(name, 'z', sizeof name);
  int length = 0;
  MPI(MPI_Get_processor_name(name, &length));
  CHECK(length > 0 && length < MPI_MAX_PROCESSOR_NAME);
  CHECK_EQ(strlen(name), length);
}

void started() {
  int flag = 0;
  MPI(MPI_Initialized(&flag));
  CHECK(flag);
  MPI(MPI_Finalized(&flag));
  CHECK(!flag);
}

void info() {
  MPI_Info i = MPI_INFO_NULL, copy = MPI_INFO_NULL;
  int n = -1, flag = -1, length = 0;
  char key[MPI_MAX_INFO_KEY], value[64];
  MPI(MPI_Info_create(&i));
  MPI(MPI_Info_get_nkeys(i, &n));
  CHECK_EQ(n, 0);
  for (int k = 0; k < 50; ++k) {
    std::string name = "key" + std::to_string(k);
    MPI(MPI_Info_set(i, name.c_str(), std::to_string(k * k).c_str()));
  }
  MPI(MPI_Info_set(i, "key7", "seven"));
  MPI(MPI_Info_get_nkeys(i, &n));
  CHECK_EQ(n, 50);
  MPI(MPI_Info_get_nthkey(i, 0, key));
  CHECK_EQ(std::string(key), std::string("key0"));
  length = sizeof value;
  MPI(MPI_Info_get_string(i, "key7", &length, value, &flag));
  CHECK(flag);
  CHECK_EQ(std::string(value), std::string("seven"));
  CHECK_EQ(length, 6);
  length = 3;  // with the end: "se"
  MPI(MPI_Info_get_string(i, "key7", &length, value, &flag));
  CHECK_EQ(std::string(value), std::string("se"));
  CHECK_EQ(length, 6);
  length = 0;
  MPI(MPI_Info_get_string(i, "none", &length, value, &flag));
  CHECK(!flag);
  MPI(MPI_Info_get(i, "key9", 63, value, &flag));
  CHECK_EQ(std::string(value), std::string("81"));
  MPI(MPI_Info_get_valuelen(i, "key9", &length, &flag));
  CHECK(flag);
  CHECK_EQ(length, 2);
  MPI(MPI_Info_dup(i, &copy));
  MPI(MPI_Info_delete(i, "key9"));
  EXPECT_CLASS(MPI_ERR_INFO_NOKEY, MPI_Info_delete(i, "key9"));
  MPI(MPI_Info_get(copy, "key9", 63, value, &flag));
  CHECK(flag);
  MPI(MPI_Info_get(i, "key9", 63, value, &flag));
  CHECK(!flag);
  std::string too_long(MPI_MAX_INFO_KEY + 5, 'k');
  EXPECT_CLASS(MPI_ERR_INFO_KEY, MPI_Info_set(i, too_long.c_str(), "x"));
  MPI(MPI_Info_free(&i));
  CHECK_EQ(i, MPI_INFO_NULL);
  MPI(MPI_Info_free(&copy));
  MPI(MPI_Info_get_nkeys(MPI_INFO_ENV, &n));
}

// Predefined handles keep the ABI's values; others survive the round trip.
void handles() {
  CHECK_EQ(MPI_Comm_toint(MPI_COMM_WORLD), 0x101);
  CHECK_EQ(MPI_Type_toint(MPI_INT), 0x209);
  CHECK_EQ(MPI_Op_toint(MPI_SUM), 0x21);
  CHECK_EQ(MPI_Comm_fromint(0x101), MPI_COMM_WORLD);
  CHECK_EQ(MPI_Type_fromint(MPI_Type_toint(MPI_DOUBLE)), MPI_DOUBLE);
  CHECK_EQ(MPI_Request_fromint(MPI_Request_toint(MPI_REQUEST_NULL)), MPI_REQUEST_NULL);
  std::vector<MPI_Comm> comms(20);
  std::vector<MPI_Request> requests(20);
  int values[20];
  for (int i = 0; i < 20; ++i) {
    MPI(MPI_Comm_dup(MPI_COMM_SELF, &comms[i]));
    MPI(MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]));
  }
  for (int i = 0; i < 20; ++i) {
    CHECK_EQ(MPI_Comm_fromint(MPI_Comm_toint(comms[i])), comms[i]);
    CHECK_EQ(MPI_Request_fromint(MPI_Request_toint(requests[i])), requests[i]);
    for (int k = 0; k < i; ++k)
      CHECK(MPI_Request_toint(requests[i]) != MPI_Request_toint(requests[k]));
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI(MPI_Type_contiguous(3, MPI_INT, &type));
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &group));
  CHECK_EQ(MPI_Type_fromint(MPI_Type_toint(type)), type);
  CHECK_EQ(MPI_Group_fromint(MPI_Group_toint(group)), group);
  MPI(MPI_Type_free(&type));
  MPI(MPI_Group_free(&group));
  for (int i = 0; i < 20; ++i) {
    MPI(MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_SELF));
    MPI(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    CHECK_EQ(values[i], i);
    MPI(MPI_Comm_free(&comms[i]));
  }
}

void memory() {
  for (MPI_Aint bytes : {MPI_Aint{0}, MPI_Aint{1}, MPI_Aint{5000}, MPI_Aint{8} << 20}) {
    void* at = nullptr;
    MPI(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &at));
    if (bytes > 0) {
      CHECK(at != nullptr);
      memset(at, 1, bytes);
    }
    MPI(MPI_Free_mem(at));
  }
}

// What a Fortran layer tells: equal values again are no mistake, others are.
void fortran() {
  int truth = 1, falsehood = 0, other = -1, got_truth = 7, got_falsehood = 7, is_set = 7;
  MPI(MPI_Abi_set_fortran_booleans(sizeof truth, &truth, &falsehood));
  MPI(MPI_Abi_set_fortran_booleans(sizeof truth, &truth, &falsehood));
  EXPECT_CLASS(MPI_ERR_ABI, MPI_Abi_set_fortran_booleans(sizeof truth, &other, &falsehood));
  EXPECT_CLASS(MPI_ERR_ABI, MPI_Abi_set_fortran_booleans(sizeof truth, &truth, &truth));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Abi_set_fortran_booleans(3, &truth, &falsehood));
  MPI(MPI_Abi_get_fortran_booleans(sizeof truth, &got_truth, &got_falsehood, &is_set));
  CHECK(is_set);
  CHECK_EQ(got_truth, truth);
  CHECK_EQ(got_falsehood, falsehood);
  char wide[16] = {}, got_wide[16] = {};
  wide[0] = 1;
  // Each size has values of its own.
  MPI(MPI_Abi_get_fortran_booleans(16, got_wide, got_wide, &is_set));
  CHECK(!is_set);
  MPI(MPI_Abi_set_fortran_booleans(16, wide, got_wide));
  char got_zero[16] = {1};
  MPI(MPI_Abi_get_fortran_booleans(16, got_wide, got_zero, &is_set));
  CHECK(is_set);
  CHECK(memcmp(got_wide, wide, 16) == 0 && got_zero[0] == 0);

  MPI_Info told = MPI_INFO_NULL, back = MPI_INFO_NULL;
  MPI(MPI_Info_create(&told));
  MPI(MPI_Info_set(told, "mpi_integer_size", "4"));
  MPI(MPI_Info_set(told, "mpi_real_size", "4"));
  MPI(MPI_Abi_set_fortran_info(told));
  MPI(MPI_Info_free(&told));
  MPI(MPI_Info_create(&told));  // the same in another order
  MPI(MPI_Info_set(told, "mpi_real_size", "4"));
  MPI(MPI_Info_set(told, "mpi_integer_size", "4"));
  MPI(MPI_Abi_set_fortran_info(told));
  MPI(MPI_Info_set(told, "mpi_real_size", "8"));
  EXPECT_CLASS(MPI_ERR_ABI, MPI_Abi_set_fortran_info(told));
  MPI(MPI_Info_set(told, "mpi_real_size", "4"));
  MPI(MPI_Info_set(told, "mpi_logical_size", "4"));
  EXPECT_CLASS(MPI_ERR_ABI, MPI_Abi_set_fortran_info(told));
  MPI(MPI_Info_free(&told));
  int keys = 0;
  MPI(MPI_Abi_get_fortran_info(&back));
  MPI(MPI_Info_get_nkeys(back, &keys));
  CHECK_EQ(keys, 2);
  MPI(MPI_Info_free(&back));
}

void pcontrol() { MPI(MPI_Pcontrol(1)); }

int wanted_level = MPI_THREAD_SINGLE;
void levels() {
  int level = -1, flag = 0;
  MPI(MPI_Query_thread(&level));
  CHECK(level >= wanted_level);
  MPI(MPI_Is_thread_main(&flag));
  CHECK(flag);
  if (level < MPI_THREAD_FUNNELED) return;
  std::thread([] {
    int other = 1;
    MPI(MPI_Is_thread_main(&other));
    CHECK(!other);
  }).join();
}

// A Fortran library is loaded before main.
void fortran_before_init() {
  int truth = 1, falsehood = 0;
  MPI(MPI_Abi_set_fortran_booleans(sizeof truth, &truth, &falsehood));
}

}  // namespace

int main(int argc, char** argv) {
  fortran_before_init();
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "FUNNELED") wanted_level = MPI_THREAD_FUNNELED;
    if (word == "SERIALIZED") wanted_level = MPI_THREAD_SERIALIZED;
    if (word == "MULTIPLE") wanted_level = MPI_THREAD_MULTIPLE;
  }
  return check::main(argc, argv,
                     {{"attributes", attributes},
                      {"versions", versions},
                      {"clocks", clocks},
                      {"processor", processor},
                      {"started", started},
                      {"info", info},
                      {"handles", handles},
                      {"memory", memory},
                      {"pcontrol", pcontrol},
                      {"fortran", fortran},
                      {"levels", levels}},
                     wanted_level);
}
