// Attributes of communicators and datatypes: values that are set, replaced, copied and deleted,
// with the program's own functions and the predefined ones; functions that fail; keyvals that are
// freed while something is cached under them; what MPI_COMM_SELF holds at the end; several threads.
#include <algorithm>
#include <atomic>
#include <thread>

#include "check.h"

namespace {

// The same cases for both kinds of object.
struct OfComm {
  using Handle = MPI_Comm;
  static constexpr auto create_keyval = MPI_Comm_create_keyval;
  static constexpr auto free_keyval = MPI_Comm_free_keyval;
  static constexpr auto set = MPI_Comm_set_attr;
  static constexpr auto get = MPI_Comm_get_attr;
  static constexpr auto erase = MPI_Comm_delete_attr;
  static constexpr auto dup = MPI_Comm_dup;
  static constexpr auto free = MPI_Comm_free;
  static inline MPI_Comm_copy_attr_function* const null_copy = MPI_COMM_NULL_COPY_FN;
  static inline MPI_Comm_copy_attr_function* const dup_fn = MPI_COMM_DUP_FN;
  static inline MPI_Comm_delete_attr_function* const null_delete = MPI_COMM_NULL_DELETE_FN;
  static MPI_Comm make() {
    MPI_Comm made = MPI_COMM_NULL;
    MPI(MPI_Comm_dup(MPI_COMM_WORLD, &made));
    return made;
  }
  static bool works(MPI_Comm comm) {
    const int one = 1;
    int sum = 0;
    MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    return sum == check::size;
  }
  static MPI_Comm null() { return MPI_COMM_NULL; }
  static constexpr int error = MPI_ERR_COMM;
};
struct OfType {
  using Handle = MPI_Datatype;
  static constexpr auto create_keyval = MPI_Type_create_keyval;
  static constexpr auto free_keyval = MPI_Type_free_keyval;
  static constexpr auto set = MPI_Type_set_attr;
  static constexpr auto get = MPI_Type_get_attr;
  static constexpr auto erase = MPI_Type_delete_attr;
  static constexpr auto dup = MPI_Type_dup;
  static constexpr auto free = MPI_Type_free;
  static inline MPI_Type_copy_attr_function* const null_copy = MPI_TYPE_NULL_COPY_FN;
  static inline MPI_Type_copy_attr_function* const dup_fn = MPI_TYPE_DUP_FN;
  static inline MPI_Type_delete_attr_function* const null_delete = MPI_TYPE_NULL_DELETE_FN;
  static MPI_Datatype make() {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI(MPI_Type_contiguous(3, MPI_INT, &made));
    return made;
  }
  static bool works(MPI_Datatype type) {
    int size = 0;
    MPI(MPI_Type_size(type, &size));
    return size == 3 * static_cast<int>(sizeof(int));
  }
  static MPI_Datatype null() { return MPI_DATATYPE_NULL; }
  static constexpr int error = MPI_ERR_TYPE;
};

// What the callbacks of this program saw and shall do. extra_state points to one.
struct Log {
  std::vector<long> copied, deleted;  // the values
  int keyval = MPI_KEYVAL_INVALID;
  long add = 0;  // to the value of a copy
  bool copies = true;
  int copy_code = MPI_SUCCESS, delete_code = MPI_SUCCESS;
  void* last_handle = nullptr;
};

void* as_value(long number) { return reinterpret_cast<void*>(number); }
long as_number(void* value) { return reinterpret_cast<long>(value); }

template <class Handle>
int note_copy(Handle old, int keyval, void* extra_state, void* in, void* out, int* flag) {
  auto* log = static_cast<Log*>(extra_state);
  CHECK_EQ(keyval, log->keyval);
  log->last_handle = static_cast<void*>(old);
  log->copied.push_back(as_number(in));
  *static_cast<void**>(out) = as_value(as_number(in) + log->add);
  *flag = log->copies;
  return log->copy_code;
}
template <class Handle>
int note_delete(Handle handle, int keyval, void* value, void* extra_state) {
  auto* log = static_cast<Log*>(extra_state);
  CHECK_EQ(keyval, log->keyval);
  log->last_handle = static_cast<void*>(handle);
  log->deleted.push_back(as_number(value));
  return log->delete_code;
}
template <class Of>
void make_noting(Log& log) {
  MPI(Of::create_keyval(note_copy<typename Of::Handle>, note_delete<typename Of::Handle>,
                        &log.keyval, &log));
  CHECK(log.keyval != MPI_KEYVAL_INVALID);
}
template <class Of>
int make_keyval(decltype(Of::null_copy) copy) {
  int keyval = MPI_KEYVAL_INVALID;
  MPI(Of::create_keyval(copy, Of::null_delete, &keyval, nullptr));
  return keyval;
}

// The value under a keyval, or -1.
template <class Of>
long read(typename Of::Handle handle, int keyval) {
  void* value = as_value(-7);
  int flag = -1;
  MPI(Of::get(handle, keyval, &value, &flag));
  CHECK(flag == 0 || flag == 1);
  if (!flag) CHECK_EQ(as_number(value), -7);
  return flag ? as_number(value) : -1;
}

using Numbers = std::vector<long>;

template <class Of>
void values() {
  Log log;
  make_noting<Of>(log);
  const int plain = make_keyval<Of>(Of::null_copy);
  CHECK(plain != log.keyval);
  typename Of::Handle one = Of::make(), other = Of::make();
  CHECK_EQ(read<Of>(one, log.keyval), -1);
  MPI(Of::set(one, log.keyval, as_value(5)));
  MPI(Of::set(one, plain, nullptr));
  CHECK_EQ(read<Of>(one, log.keyval), 5);
  CHECK_EQ(read<Of>(one, plain), 0);  // a null value is a value
  CHECK_EQ(read<Of>(other, log.keyval), -1);
  MPI(Of::set(other, log.keyval, as_value(50)));
  MPI(Of::set(one, log.keyval, as_value(6)));  // replaces
  CHECK(log.deleted == Numbers({5}));
  CHECK(log.last_handle == static_cast<void*>(one));
  CHECK_EQ(read<Of>(one, log.keyval), 6);
  CHECK_EQ(read<Of>(other, log.keyval), 50);
  MPI(Of::erase(one, log.keyval));
  MPI(Of::erase(one, log.keyval));  // nothing there
  CHECK(log.deleted == Numbers({5, 6}));
  CHECK_EQ(read<Of>(one, log.keyval), -1);
  CHECK_EQ(read<Of>(one, plain), 0);
  MPI(Of::free(&other));
  CHECK(log.deleted == Numbers({5, 6, 50}));
  MPI(Of::free(&one));
  int keyval = plain;
  MPI(Of::free_keyval(&keyval));
  CHECK_EQ(keyval, MPI_KEYVAL_INVALID);
  MPI(Of::free_keyval(&log.keyval));
}

template <class Of>
void copies() {
  Log adds, refuses;
  adds.add = 100;
  refuses.copies = false;
  make_noting<Of>(adds);
  make_noting<Of>(refuses);
  int null_copy = make_keyval<Of>(Of::null_copy), same = make_keyval<Of>(Of::dup_fn);
  typename Of::Handle one = Of::make(), copy = Of::null(), second = Of::null();
  MPI(Of::set(one, adds.keyval, as_value(1)));
  MPI(Of::set(one, refuses.keyval, as_value(2)));
  MPI(Of::set(one, null_copy, as_value(3)));
  MPI(Of::set(one, same, as_value(4)));
  MPI(Of::dup(one, &copy));
  CHECK(adds.last_handle == static_cast<void*>(one));
  CHECK(adds.copied == Numbers({1}) && refuses.copied == Numbers({2}));
  CHECK_EQ(read<Of>(copy, adds.keyval), 101);
  CHECK_EQ(read<Of>(copy, refuses.keyval), -1);
  CHECK_EQ(read<Of>(copy, null_copy), -1);
  CHECK_EQ(read<Of>(copy, same), 4);
  CHECK_EQ(read<Of>(one, adds.keyval), 1);
  MPI(Of::dup(copy, &second));
  CHECK_EQ(read<Of>(second, adds.keyval), 201);
  MPI(Of::free(&copy));
  CHECK(adds.deleted == Numbers({101}));
  CHECK_EQ(read<Of>(one, same), 4);
  CHECK_EQ(read<Of>(second, same), 4);
  MPI(Of::free(&one));
  CHECK(adds.deleted == Numbers({101, 1}) && refuses.deleted == Numbers({2}));
  MPI(Of::free(&second));
  CHECK(adds.deleted == Numbers({101, 1, 201}));
  for (int* keyval : {&adds.keyval, &refuses.keyval, &null_copy, &same}) {
    MPI(Of::free_keyval(keyval));
  }
}

// The number stays valid for what is cached under it, and is freed with the last of that.
template <class Of>
void freed_keyval() {
  Log log;
  make_noting<Of>(log);
  typename Of::Handle one = Of::make(), copy = Of::null();
  MPI(Of::set(one, log.keyval, as_value(1)));
  for (int round = 0; round < 3; ++round) {
    int given = log.keyval;
    MPI(Of::free_keyval(&given));  // more than once does no harm
    CHECK_EQ(given, MPI_KEYVAL_INVALID);
  }
  int other = make_keyval<Of>(Of::null_copy);
  CHECK(other != log.keyval);
  CHECK_EQ(read<Of>(one, log.keyval), 1);
  MPI(Of::dup(one, &copy));
  MPI(Of::erase(one, log.keyval));
  CHECK(log.deleted == Numbers({1}));
  CHECK_EQ(read<Of>(copy, log.keyval), 1);
  MPI(Of::free(&copy));
  CHECK(log.deleted == Numbers({1, 1}));
  MPI(Of::free(&one));
  MPI(Of::free_keyval(&other));
}

template <class Of>
void refused() {
  typename Of::Handle one = Of::make();
  int keyval = make_keyval<Of>(Of::null_copy), foreign = MPI_KEYVAL_INVALID;
  void* value = nullptr;
  int flag = 0;
  if constexpr (std::is_same_v<Of, OfComm>) {
    foreign = make_keyval<OfType>(OfType::null_copy);
  } else {
    foreign = make_keyval<OfComm>(OfComm::null_copy);
  }
  for (int bad : {MPI_KEYVAL_INVALID + 0, -1, 12345, keyval + 1, foreign}) {
    EXPECT_CLASS(MPI_ERR_KEYVAL, Of::set(one, bad, nullptr));
    EXPECT_CLASS(MPI_ERR_KEYVAL, Of::get(one, bad, &value, &flag));
    EXPECT_CLASS(MPI_ERR_KEYVAL, Of::erase(one, bad));
    int copy = bad;
    EXPECT_CLASS(MPI_ERR_KEYVAL, Of::free_keyval(&copy));
    CHECK_EQ(copy, bad);
  }
  for (int predefined : {MPI_TAG_UB, MPI_LASTUSEDCODE, MPI_WIN_BASE}) {
    EXPECT_CLASS(MPI_ERR_KEYVAL, Of::set(one, predefined, nullptr));
    EXPECT_CLASS(MPI_ERR_KEYVAL, Of::erase(one, predefined));
    EXPECT_CLASS(MPI_ERR_KEYVAL, Of::free_keyval(&predefined));
  }
  EXPECT_CLASS(Of::error, Of::set(Of::null(), keyval, nullptr));
  EXPECT_CLASS(Of::error, Of::get(Of::null(), keyval, &value, &flag));
  EXPECT_CLASS(Of::error, Of::erase(Of::null(), keyval));
  EXPECT_CLASS(MPI_ERR_ARG, Of::get(one, keyval, nullptr, &flag));
  EXPECT_CLASS(MPI_ERR_ARG, Of::get(one, keyval, &value, nullptr));
  EXPECT_CLASS(MPI_ERR_ARG, Of::create_keyval(Of::null_copy, Of::null_delete, nullptr, nullptr));
  MPI(Of::set(one, keyval, as_value(1)));
  int given = keyval;
  MPI(Of::free_keyval(&given));
  EXPECT_CLASS(MPI_ERR_KEYVAL, Of::set(one, keyval, as_value(2)));  // freed: reading and deleting
  CHECK_EQ(read<Of>(one, keyval), 1);
  MPI(Of::erase(one, keyval));
  EXPECT_CLASS(MPI_ERR_KEYVAL, Of::get(one, keyval, &value, &flag));  // gone with the last one
  MPI(Of::free(&one));
  if constexpr (std::is_same_v<Of, OfComm>) {
    MPI(OfType::free_keyval(&foreign));
  } else {
    MPI(OfComm::free_keyval(&foreign));
  }
}

// A function of the program that fails lets the call fail, and nothing else changes.
template <class Of>
void failing() {
  Log good, bad;
  make_noting<Of>(good);
  make_noting<Of>(bad);
  typename Of::Handle one = Of::make();
  MPI(Of::set(one, good.keyval, as_value(1)));
  MPI(Of::set(one, bad.keyval, as_value(2)));
  int own = 0;
  MPI(MPI_Add_error_class(&own));
  bad.copy_code = own;
  typename Of::Handle copy = one;
  EXPECT_CLASS(own, Of::dup(one, &copy));
  CHECK(copy == Of::null());
  CHECK(good.copied == Numbers({1}) && good.deleted == Numbers({1}));  // what was copied went again
  CHECK(bad.deleted.empty());
  bad.copy_code = -3;  // no error code at all
  EXPECT_CLASS(MPI_ERR_OTHER, Of::dup(one, &copy));
  bad.delete_code = MPI_ERR_INFO;
  EXPECT_CLASS(MPI_ERR_INFO, Of::set(one, bad.keyval, as_value(3)));
  EXPECT_CLASS(MPI_ERR_INFO, Of::erase(one, bad.keyval));
  CHECK_EQ(read<Of>(one, bad.keyval), 2);
  typename Of::Handle kept = one;
  EXPECT_CLASS(MPI_ERR_INFO, Of::free(&one));
  CHECK(one == kept);
  CHECK(Of::works(one));
  bad.delete_code = MPI_SUCCESS;
  MPI(Of::free(&one));
  CHECK(one == Of::null());
  CHECK_EQ(std::count(good.deleted.begin(), good.deleted.end(), 1), 3);
  MPI(MPI_Remove_error_class(own));
  MPI(Of::free_keyval(&good.keyval));
  MPI(Of::free_keyval(&bad.keyval));
}

void both(void (*of_comm)(), void (*of_type)()) {
  of_comm();
  of_type();
}
void all_values() { both(values<OfComm>, values<OfType>); }
void all_copies() { both(copies<OfComm>, copies<OfType>); }
void all_freed_keyvals() { both(freed_keyval<OfComm>, freed_keyval<OfType>); }
void all_refused() { both(refused<OfComm>, refused<OfType>); }
void all_failing() { both(failing<OfComm>, failing<OfType>); }

// Every way to make and to free a communicator.
void ways() {
  Log log;
  log.add = 1;
  make_noting<OfComm>(log);
  MPI_Comm one = OfComm::make(), copy = MPI_COMM_NULL;
  MPI(MPI_Comm_set_attr(one, log.keyval, as_value(10)));
  MPI(MPI_Comm_dup_with_info(one, MPI_INFO_NULL, &copy));
  CHECK_EQ(read<OfComm>(copy, log.keyval), 11);
  MPI(MPI_Comm_disconnect(&copy));
  CHECK(log.deleted == Numbers({11}));
  for (bool with_info : {false, true}) {
    // The values are those of the call, not of its completion.
    MPI_Request request = MPI_REQUEST_NULL;
    MPI(MPI_Comm_set_attr(one, log.keyval, as_value(20)));
    if (with_info) {
      MPI(MPI_Comm_idup_with_info(one, MPI_INFO_NULL, &copy, &request));
    } else {
      MPI(MPI_Comm_idup(one, &copy, &request));
    }
    MPI(MPI_Comm_set_attr(one, log.keyval, as_value(30)));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(read<OfComm>(copy, log.keyval), 21);
    CHECK(OfComm::works(copy));
    MPI(MPI_Comm_free(&copy));
  }
  MPI(MPI_Comm_split(one, 0, 0, &copy));  // copies nothing
  CHECK_EQ(read<OfComm>(copy, log.keyval), -1);
  MPI(MPI_Comm_free(&copy));
  MPI(MPI_Comm_free(&one));
  MPI(MPI_Comm_free_keyval(&log.keyval));
}

// A copy function that fails in MPI_Comm_idup.
void failing_idup() {
  Log log;
  make_noting<OfComm>(log);
  MPI_Comm one = OfComm::make(), copy = one;
  MPI(MPI_Comm_set_attr(one, log.keyval, as_value(10)));
  log.copy_code = MPI_ERR_OTHER;
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_CLASS(MPI_ERR_OTHER, MPI_Comm_idup(one, &copy, &request));
  CHECK_EQ(copy, MPI_COMM_NULL);
  CHECK_EQ(request, MPI_REQUEST_NULL);
  CHECK(OfComm::works(one));
  MPI(MPI_Comm_free(&one));
  MPI(MPI_Comm_free_keyval(&log.keyval));
}

// One rank's function fails: the others get their communicator, and it is of no use.
void failing_alone() {
  Log log;
  make_noting<OfComm>(log);
  MPI_Comm one = OfComm::make(), copy = MPI_COMM_NULL;
  MPI(MPI_Comm_set_attr(one, log.keyval, as_value(10)));
  const bool fails = check::rank == check::size - 1;
  if (fails) log.copy_code = MPI_ERR_OTHER;
  const int code = MPI_Comm_dup(one, &copy);
  CHECK_EQ(check::class_of(code), fails ? MPI_ERR_OTHER : MPI_SUCCESS);
  CHECK(OfComm::works(one));
  if (!fails) MPI(MPI_Comm_free(&copy));
  MPI(MPI_Comm_free(&one));
  MPI(MPI_Comm_free_keyval(&log.keyval));
}

// The newest first.
void order() {
  static Numbers deleted;
  deleted.clear();
  const auto note = [](MPI_Comm, int, void* value, void*) {
    deleted.push_back(as_number(value));
    return MPI_SUCCESS + 0;
  };
  std::vector<int> keyvals(20);
  MPI_Comm comm = OfComm::make();
  for (int& keyval : keyvals) {
    MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note, &keyval, nullptr));
    MPI(MPI_Comm_set_attr(comm, keyval, as_value(&keyval - keyvals.data())));
  }
  MPI(MPI_Comm_set_attr(comm, keyvals[3], as_value(103)));  // as if deleted and set anew
  CHECK(deleted == Numbers({3}));
  for (int& keyval : keyvals) MPI(MPI_Comm_free_keyval(&keyval));
  MPI(MPI_Comm_free(&comm));
  CHECK_EQ(deleted.size(), 21);
  CHECK_EQ(deleted[1], 103);
  CHECK_EQ(deleted[2], 19);
  CHECK_EQ(deleted[20], 0);
}

// As libraries do: a communicator of their own is cached on the user's, and freed with it.
int free_inner(MPI_Comm comm, int keyval, void* value, void*) {
  auto* inner = static_cast<MPI_Comm*>(value);
  void* seen = nullptr;
  int flag = 0;
  MPI(MPI_Comm_get_attr(comm, keyval, &seen, &flag));
  CHECK(flag && seen == value);  // there until this returns
  CHECK(OfComm::works(*inner));
  MPI(MPI_Comm_free(inner));
  delete inner;
  MPI(MPI_Comm_free_keyval(&keyval));
  return MPI_SUCCESS;
}
int dup_inner(MPI_Comm, int, void*, void* in, void* out, int* flag) {
  auto* inner = new MPI_Comm;
  MPI(MPI_Comm_dup(*static_cast<MPI_Comm*>(in), inner));
  *static_cast<void**>(out) = inner;
  *flag = 1;
  return MPI_SUCCESS;
}
void library() {
  int keyval = MPI_KEYVAL_INVALID;
  MPI(MPI_Comm_create_keyval(dup_inner, free_inner, &keyval, nullptr));
  MPI_Comm user = OfComm::make(), copy = MPI_COMM_NULL;
  auto* inner = new MPI_Comm(OfComm::make());
  MPI(MPI_Comm_set_attr(user, keyval, inner));
  MPI(MPI_Comm_dup(user, &copy));
  MPI(MPI_Comm_free(&user));
  MPI(MPI_Comm_free(&copy));
}

void types() {
  Log log;
  make_noting<OfType>(log);
  MPI(MPI_Type_set_attr(MPI_INT, log.keyval, as_value(8)));
  CHECK_EQ(read<OfType>(MPI_INT, log.keyval), 8);
  CHECK_EQ(read<OfType>(MPI_FLOAT, log.keyval), -1);
  MPI_Datatype copy = MPI_DATATYPE_NULL, vector = MPI_DATATYPE_NULL, inner = MPI_DATATYPE_NULL;
  MPI(MPI_Type_dup(MPI_INT, &copy));
  CHECK_EQ(read<OfType>(copy, log.keyval), 8);
  MPI(MPI_Type_vector(2, 1, 2, copy, &vector));
  CHECK_EQ(read<OfType>(vector, log.keyval), -1);
  // Another handle of the same datatype may be freed without loss.
  int count = 0;
  MPI_Aint address = 0;
  int numbers[3];
  MPI(MPI_Type_get_contents(vector, 3, 0, 1, numbers, &address, &inner));
  MPI(MPI_Type_free(&inner));
  CHECK(log.deleted.empty());
  CHECK_EQ(read<OfType>(copy, log.keyval), 8);
  MPI(MPI_Type_free(&copy));  // the vector still uses it
  CHECK(log.deleted == Numbers({8}));
  MPI(MPI_Type_commit(&vector));
  MPI(MPI_Type_size(vector, &count));
  CHECK_EQ(count, 8);
  MPI(MPI_Type_free(&vector));
  MPI(MPI_Type_delete_attr(MPI_INT, log.keyval));
  CHECK(log.deleted == Numbers({8, 8}));
  MPI(MPI_Type_free_keyval(&log.keyval));
}

// The names of MPI 1.
void deprecated() {
  Log log;
  MPI(MPI_Keyval_create(note_copy<MPI_Comm>, note_delete<MPI_Comm>, &log.keyval, &log));
  MPI_Comm comm = OfComm::make(), copy = MPI_COMM_NULL;
  MPI(MPI_Attr_put(comm, log.keyval, as_value(1)));
  void* value = nullptr;
  int flag = 0;
  MPI(MPI_Comm_dup(comm, &copy));
  MPI(MPI_Attr_get(copy, log.keyval, &value, &flag));
  CHECK(flag && as_number(value) == 1);
  MPI(MPI_Attr_delete(copy, log.keyval));
  MPI(MPI_Attr_get(copy, log.keyval, &value, &flag));
  CHECK_EQ(flag, 0);
  CHECK(log.deleted == Numbers({1}));
  int plain = MPI_KEYVAL_INVALID;
  MPI(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &plain, nullptr));
  MPI(MPI_Attr_put(comm, plain, as_value(2)));
  MPI(MPI_Comm_free(&copy));
  MPI(MPI_Comm_dup(comm, &copy));
  CHECK_EQ(read<OfComm>(copy, plain), 2);
  MPI(MPI_Comm_free(&copy));
  MPI(MPI_Comm_free(&comm));
  MPI(MPI_Keyval_free(&plain));
  MPI(MPI_Keyval_free(&log.keyval));
  CHECK_EQ(log.keyval, MPI_KEYVAL_INVALID);
}

// Threads share a keyval and a communicator; each value that was set is deleted once.
std::atomic<long> set_count{0}, delete_count{0};
void threads() {
  set_count = delete_count = 0;
  int keyval = MPI_KEYVAL_INVALID;
  const auto count = [](MPI_Comm, int, void*, void*) {
    ++delete_count;
    return MPI_SUCCESS + 0;
  };
  MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count, &keyval, nullptr));
  MPI_Comm shared = OfComm::make();
  std::vector<MPI_Comm> own(4);
  for (MPI_Comm& comm : own) comm = OfComm::make();
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&, t] {
      check::Random random(check::seed + t);
      for (int round = 0; round < 2000; ++round) {
        MPI_Comm comm = random.chance(50) ? shared : own[t];
        void* value = nullptr;
        int flag = 0;
        if (random.chance(40)) {
          MPI(MPI_Comm_set_attr(comm, keyval, as_value(++set_count)));
        } else if (random.chance(30)) {
          MPI(MPI_Comm_delete_attr(comm, keyval));
        } else {
          MPI(MPI_Comm_get_attr(comm, keyval, &value, &flag));
          if (flag) CHECK(as_number(value) > 0);
        }
        if (round % 100 == 0) {
          int mine = MPI_KEYVAL_INVALID;
          MPI(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &mine, nullptr));
          MPI(MPI_Comm_set_attr(own[t], mine, as_value(round)));
          MPI(MPI_Comm_dup(own[t], &comm));
          MPI(MPI_Comm_free_keyval(&mine));
          MPI(MPI_Comm_free(&own[t]));
          own[t] = comm;
        }
      }
    });
  }
  for (std::thread& one : all) one.join();
  for (MPI_Comm& comm : own) MPI(MPI_Comm_free(&comm));
  MPI(MPI_Comm_free(&shared));
  CHECK_EQ(set_count.load(), delete_count.load());
  MPI(MPI_Comm_free_keyval(&keyval));
}

// What MPI_COMM_SELF holds is deleted first thing in MPI_Finalize, newest first; MPI still works.
Numbers at_end;
bool until_the_end_ran = false;
int note_end(MPI_Comm comm, int, void* value, void*) {
  int finalized = -1;
  MPI(MPI_Finalized(&finalized));
  CHECK_EQ(finalized, 0);
  CHECK_EQ(comm, MPI_COMM_SELF);
  CHECK(OfComm::works(MPI_COMM_WORLD));
  at_end.push_back(as_number(value));
  return MPI_SUCCESS;
}
void until_the_end() {
  until_the_end_ran = true;
  for (long i = 0; i < 5; ++i) {
    int keyval = MPI_KEYVAL_INVALID;
    MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_end, &keyval, nullptr));
    MPI(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, as_value(i)));
    if (i % 2) MPI(MPI_Comm_free_keyval(&keyval));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int code = check::main(argc, argv,
                               {{"values", all_values},
                                {"copies", all_copies},
                                {"freed_keyval", all_freed_keyvals},
                                {"refused", all_refused},
                                {"failing", all_failing},
                                {"failing_idup", failing_idup},
                                {"failing_alone", failing_alone},
                                {"ways", ways},
                                {"order", order},
                                {"library", library},
                                {"types", types},
                                {"deprecated", deprecated},
                                {"threads", threads},
                                {"until_the_end", until_the_end}},
                               MPI_THREAD_MULTIPLE);
  if (code == 0 && until_the_end_ran && at_end != Numbers({4, 3, 2, 1, 0})) {
    fprintf(stderr, "rank %d: MPI_Finalize deleted in another order\n", check::rank);
    return 1;
  }
  return code;
}
