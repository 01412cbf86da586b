// What every many-process test program shares: checks that name rank, place and values, byte
// patterns that belong to one message, seeded random numbers, and a main that runs named cases.
// Thread: checks may fail on any thread. Owner: each program. Invariant: a failed check prints one
// line to stderr and aborts the job; rank 0 prints "ok" only after MPI_Finalize has returned.
#pragma once
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>
#include <type_traits>
#include <vector>

namespace check {

inline int rank = -1;
inline int size = 0;
inline const char* running = "start";
inline uint64_t seed = 1;
inline uint64_t scale = 1;
inline uint64_t runs = 0;               // --runs=N: so many short ones, each with the next seed
inline std::vector<std::string> words;  // arguments that are not ours
inline std::string skipped = ",";       // names of cases between commas

[[noreturn]] __attribute__((format(printf, 3, 4))) inline void fail(const char* file, int line,
                                                                    const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const char* base = strrchr(file, '/');
  fprintf(stderr, "FAILED rank %d of %d, case %s, %s:%d: %s (seed %llu)\n", rank, size, running,
          base != nullptr ? base + 1 : file, line, text, static_cast<unsigned long long>(seed));
  fflush(stderr);
  int up = 0;
  int down = 0;
  MPI_Initialized(&up);
  MPI_Finalized(&down);
  if (up != 0 && down == 0) MPI_Abort(MPI_COMM_WORLD, 3);
  _exit(3);
}

inline std::string text_of(bool v) { return v ? "true" : "false"; }
inline std::string text_of(const std::string& v) { return "\"" + v + "\""; }
inline std::string text_of(const char* v) { return v != nullptr ? std::string(v) : "(null)"; }
template <class T>
std::string text_of(const T& v) {
  if constexpr (std::is_enum_v<T>) return std::to_string(static_cast<long long>(v));
  if constexpr (std::is_floating_point_v<T>) {
    char text[64];
    snprintf(text, sizeof text, "%.17Lg", static_cast<long double>(v));
    return text;
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(v);
  } else if constexpr (std::is_pointer_v<T>) {
    char text[32];
    snprintf(text, sizeof text, "%p", static_cast<const void*>(v));
    return text;
  } else {
    return "(value)";
  }
}

template <class A, class B>
bool same(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, bool> &&
                !std::is_same_v<B, bool>) {
    return static_cast<__int128>(a) == static_cast<__int128>(b);
  } else {
    return a == b;
  }
}

// The class of an error code, which is what the standard fixes.
inline int class_of(int code) {
  int error_class = MPI_ERR_UNKNOWN;
  MPI_Error_class(code, &error_class);
  return error_class;
}

inline void expect_success(int code, const char* call, const char* file, int line) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(file, line, "%s returned %d (class %d): %s", call, code, class_of(code), text);
}

inline void expect_class(int code, int wanted, const char* call, const char* file, int line) {
  int got = class_of(code);
  if (got == wanted) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  char wanted_text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  MPI_Error_string(wanted, wanted_text, &length);
  fail(file, line, "%s returned class %d (%s), expected class %d (%s)", call, got, text, wanted,
       wanted_text);
}

// splitmix64: small, seeded, the same everywhere.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t start) : state_(mix(start)) {}
  uint64_t next() { return mix(state_ += 0x632be59bd9b4e019ull); }
  // A number from 0 to n - 1.
  uint64_t below(uint64_t n) { return n == 0 ? 0 : next() % n; }
  int between(int low, int high) { return low + static_cast<int>(below(high - low + 1)); }
  bool chance(int percent) { return below(100) < static_cast<uint64_t>(percent); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& v) {
    for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[below(i)]);
  }

 private:
  uint64_t state_;
};

// A key for the bytes of one message, from whatever names it.
inline uint64_t key_of(uint64_t a, uint64_t b = 0, uint64_t c = 0) {
  return mix(mix(mix(a) ^ b) ^ c);
}
inline uint8_t byte_of(uint64_t key, size_t offset) {
  return static_cast<uint8_t>(mix(key + offset / 8) >> (8 * (offset % 8)));
}
inline void fill(void* buffer, size_t bytes, uint64_t key) {
  auto* to = static_cast<uint8_t*>(buffer);
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    uint64_t word = mix(key + i / 8);
    memcpy(to + i, &word, 8);
  }
  for (; i < bytes; ++i) to[i] = byte_of(key, i);
}
// Index of the first wrong byte, or `bytes` if all are right.
inline size_t first_wrong(const void* buffer, size_t bytes, uint64_t key) {
  const auto* from = static_cast<const uint8_t*>(buffer);
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) {
    uint64_t word;
    memcpy(&word, from + i, 8);
    if (word != mix(key + i / 8)) break;
  }
  for (; i < bytes; ++i) {
    if (from[i] != byte_of(key, i)) return i;
  }
  return bytes;
}
inline void expect_bytes(const void* buffer, size_t bytes, uint64_t key, const char* file,
                         int line) {
  size_t wrong = first_wrong(buffer, bytes, key);
  if (wrong == bytes) return;
  fail(file, line, "byte %zu of %zu is %02x, expected %02x", wrong, bytes,
       static_cast<const uint8_t*>(buffer)[wrong], byte_of(key, wrong));
}
// Bytes that nobody may have written.
inline void expect_untouched(const void* buffer, size_t bytes, uint8_t value, const char* file,
                             int line) {
  const auto* from = static_cast<const uint8_t*>(buffer);
  for (size_t i = 0; i < bytes; ++i) {
    if (from[i] != value) {
      fail(file, line, "byte %zu of %zu that nobody may write is %02x, was %02x", i, bytes, from[i],
           value);
    }
  }
}

struct Case {
  const char* name;
  void (*run)();
  int ranks = 1;  // skipped with fewer
};

inline void parse(int argc, char** argv, std::string& only, bool& list) {
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    auto value = [&](const char* name, uint64_t& to) {
      std::string prefix = std::string("--") + name + "=";
      if (word.rfind(prefix, 0) != 0) return false;
      to = strtoull(word.c_str() + prefix.size(), nullptr, 0);
      return true;
    };
    if (value("seed", seed) || value("scale", scale) || value("runs", runs)) continue;
    if (word.rfind("--only=", 0) == 0) {
      only = word.substr(7);
    } else if (word.rfind("--skip=", 0) == 0) {
      skipped += word.substr(7) + ",";
    } else if (word == "--list") {
      list = true;
    } else {
      words.push_back(word);
    }
  }
}

// CHECK_BARE=1 leaves out what the cases do not need themselves: for a library under construction.
inline bool bare() { return getenv("CHECK_BARE") != nullptr; }

inline bool errors_are_fatal() {
  const char* errors = getenv("CHECK_ERRORS");
  return errors && strcmp(errors, "fatal") == 0;
}

inline void learn_world() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // The programs look at every return code themselves and so can name the line.
  // CHECK_ERRORS=fatal leaves the default, where the library may return before it knows of one.
  if (errors_are_fatal()) return;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

// Runs the cases with an MPI_Barrier after each; gives how many.
inline int run_all(const std::vector<Case>& cases, const std::string& only) {
  int ran = 0;
  for (const Case& c : cases) {
    if ((!only.empty() && only != c.name) || size < c.ranks) continue;
    if (skipped.find("," + std::string(c.name) + ",") != std::string::npos) continue;
    running = c.name;
    if (getenv("CHECK_TRACE") != nullptr && rank == 0) fprintf(stderr, "case %s\n", c.name);
    c.run();
    ++ran;
    if (!bare()) expect_success(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier", __FILE__, __LINE__);
  }
  return ran;
}

// Runs the cases, once or as often as --runs says. `level` above SINGLE starts with
// MPI_Init_thread.
inline int main(int argc, char** argv, const std::vector<Case>& cases,
                int level = MPI_THREAD_SINGLE) {
  std::string only;
  bool list = false;
  parse(argc, argv, only, list);
  if (list) {
    for (const Case& c : cases) printf("%s\n", c.name);
    return 0;
  }
  int provided = MPI_THREAD_SINGLE;
  int code = level == MPI_THREAD_SINGLE ? MPI_Init(&argc, &argv)
                                        : MPI_Init_thread(&argc, &argv, level, &provided);
  if (code != MPI_SUCCESS) fail(__FILE__, __LINE__, "initialization returned %d", code);
  learn_world();
  if (level > provided) fail(__FILE__, __LINE__, "level %d wanted, %d provided", level, provided);
  int ran = 0;
  for (uint64_t run = 0; run < (runs ? runs : 1); ++run) {
    if (run > 0) ++seed;
    // Who hangs is known by the last of these lines.
    if (runs && rank == 0) fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(seed));
    ran += run_all(cases, only);
  }
  running = "end";
  if (ran == 0) fail(__FILE__, __LINE__, "no case ran: unknown name or too few ranks");
  expect_success(MPI_Finalize(), "MPI_Finalize", __FILE__, __LINE__);
  if (rank == 0)
    printf("ok %d cases, %d ranks, seed %llu\n", ran, size, static_cast<unsigned long long>(seed));
  fflush(stdout);
  return 0;
}

}  // namespace check

// The call must succeed.
#define MPI(call) ::check::expect_success((call), #call, __FILE__, __LINE__)
// The call must return an error of that class.
#define EXPECT_CLASS(wanted, call) ::check::expect_class((call), wanted, #call, __FILE__, __LINE__)
#define CHECK(condition)                                                                \
  do {                                                                                  \
    if (!(condition)) ::check::fail(__FILE__, __LINE__, "%s", "not true: " #condition); \
  } while (0)
#define CHECK_EQ(got, wanted)                                                                    \
  do {                                                                                           \
    const auto got_ = (got);                                                                     \
    const auto wanted_ = (wanted);                                                               \
    if (!::check::same(got_, wanted_)) {                                                         \
      ::check::fail(__FILE__, __LINE__, "%s is %s, expected %s (%s)", #got,                      \
                    ::check::text_of(got_).c_str(), ::check::text_of(wanted_).c_str(), #wanted); \
    }                                                                                            \
  } while (0)
#define CHECK_BYTES(buffer, bytes, key) \
  ::check::expect_bytes(buffer, bytes, key, __FILE__, __LINE__)
#define CHECK_UNTOUCHED(buffer, bytes, value) \
  ::check::expect_untouched(buffer, bytes, value, __FILE__, __LINE__)
// The three public fields' worth of a receive: who, which tag, how many bytes.
#define CHECK_STATUS(status, source, tag, bytes)      \
  do {                                                \
    int count_ = -1;                                  \
    MPI(MPI_Get_count(&(status), MPI_BYTE, &count_)); \
    CHECK_EQ((status).MPI_SOURCE, source);            \
    CHECK_EQ((status).MPI_TAG, tag);                  \
    CHECK_EQ(count_, bytes);                          \
  } while (0)
