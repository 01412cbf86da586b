// What a system refuses: userfaultfd, memfd, descriptors, locked memory, mappings, file sizes; and
// memory that must not be closed. Each in a child that has the limit: the mechanism says so, the
// memory stays as it was, and nothing is half closed.
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <vector>

#include "guard/detail/descriptor.h"
#include "guard/guard_test_closed.h"
#include "guard/guard_test_limits.h"
#include "guard/missing.h"

namespace headway::guard {
namespace {

// Closes, with nothing lost: 0 it did, 1 it did not and all is as before, 2 it left something
// wrong.
int try_to_close(Mechanism& mechanism, Range range) {
  std::vector<uint8_t> scratch(range.pages);
  std::vector<char> before(range.base, range.end());
  char* view = nullptr;
  const Outcome closed = mechanism.close(range, true, scratch.data(), view);
  if (closed == Outcome::ok) {
    bool gone = false;
    const bool kept = memcmp(view, before.data(), range.bytes()) == 0;
    const bool opened = mechanism.open(range.base, view, range.pages, gone) == range.pages;
    mechanism.forget(range);
    mechanism.give_back(view, range.pages);
    return kept && opened && memcmp(range.base, before.data(), range.bytes()) == 0 ? 0 : 2;
  }
  if (view || memcmp(range.base, before.data(), range.bytes()) != 0) return 2;
  for (size_t i = 0; i < range.bytes(); i += 512) range.base[i] = char(i >> 9);
  for (size_t i = 0; i < range.bytes(); i += 512) {
    if (range.base[i] != char(i >> 9)) return 2;
  }
  return 1;
}

enum : int { did = 0, refused_cleanly = 1, left_wrong = 2, not_started = 3, not_testable = 77 };

// A mechanism under limits that `before` (as root) and `after` (once it has started) set.
int under(Wish wish, const std::function<bool()>& before, const std::function<bool()>& after,
          size_t pages) {
  return in_child([&] {
    Memory memory(pages + 2);  // between neighbours, so that closing takes two more mappings
    for (size_t i = 0; i < memory.bytes; i += 100) memory.base[i] = byte_of(9, i);
    if (before && !before()) return int(not_testable);
    Choice choice;
    if (choice.start(wish) != Outcome::ok) return int(not_started);
    if (after && !after()) return int(not_testable);
    return try_to_close(*choice.mechanism(), {memory.base + page_bytes, pages});
  });
}

class Refusals : public testing::TestWithParam<Wish> {
 protected:
  void SetUp() override {
    Choice choice;
    if (choice.start(GetParam()) != Outcome::ok) GTEST_SKIP() << choice.why();
    choice.stop();
  }
  bool has_curtain() const { return GetParam() != Wish::missing; }
};

// What is chosen where a system call is refused, and that the reason is told.
Kind chosen_without(int number, Wish wish) {
  return Kind(in_child([&] {
    // Root could open /dev/userfaultfd instead.
    if (number == SYS_userfaultfd && geteuid() == 0 && !become_nobody()) return int(not_testable);
    if (number >= 0 && !refuse(number)) return int(not_testable);
    const char* why = "";
    const Kind kind = choose(look_at_system(), wish, why);
    Choice choice;
    const bool started = choice.start(wish) == Outcome::ok;
    if (started != (kind != Kind::none)) return 50;
    if (!started && (!*choice.why() || choice.mechanism())) return 51;
    if (started && choice.mechanism()->kind() != kind) return 52;
    return int(kind);
  }));
}

TEST(Choosing, TheBestThatTheSystemGives) {
  Choice choice;
  if (choice.start(Wish::missing) != Outcome::ok) GTEST_SKIP() << choice.why();
  choice.stop();
  EXPECT_EQ(chosen_without(-1, Wish::automatic), Kind::missing);
  EXPECT_EQ(chosen_without(-1, Wish::minor), Kind::minor);
  EXPECT_EQ(chosen_without(-1, Wish::trap), Kind::trap);
  EXPECT_EQ(chosen_without(-1, Wish::none), Kind::none);
  // What changes the program's memory or its signals is for those who ask for it.
  EXPECT_EQ(chosen_without(SYS_userfaultfd, Wish::automatic), Kind::none);
  EXPECT_EQ(chosen_without(SYS_userfaultfd, Wish::trap), Kind::trap);
  EXPECT_EQ(chosen_without(SYS_userfaultfd, Wish::missing), Kind::none);
  EXPECT_EQ(chosen_without(SYS_userfaultfd, Wish::minor), Kind::none);
  EXPECT_EQ(chosen_without(SYS_memfd_create, Wish::automatic), Kind::missing);
  EXPECT_EQ(chosen_without(SYS_memfd_create, Wish::minor), Kind::none);
  EXPECT_EQ(chosen_without(SYS_memfd_create, Wish::trap), Kind::none);
}

TEST(Choosing, AnOrdinaryUserGetsUserMode) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  for (const Wish wish : every_wish) {
    SCOPED_TRACE(name_of(Kind(uint8_t(wish))));
    const int answer = in_child([&] {
      if (!become_nobody()) return int(not_testable);
      Choice choice;
      if (choice.start(wish) != Outcome::ok) return int(not_started);
      if (choice.sees_kernel()) return 4;
      Memory memory(4);
      return try_to_close(*choice.mechanism(), {memory.base, 4});
    });
    EXPECT_EQ(answer, did);
  }
}

// Nothing of it takes locked memory, nor files of any size.
TEST_P(Refusals, LockedMemoryIsUsedUp) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone can take back its right to lock";
  const auto none = [] { return limit(RLIMIT_MEMLOCK, 0) && become_nobody(); };
  EXPECT_EQ(under(GetParam(), none, nullptr, 64), did);
}

TEST_P(Refusals, FileSizesAreLimited) {
  const auto small = [] { return limit(RLIMIT_FSIZE, 32 * page_bytes); };
  EXPECT_EQ(under(GetParam(), small, nullptr, 16), did);
  EXPECT_EQ(under(GetParam(), nullptr, small, 64), did);
  EXPECT_EQ(under(GetParam(), small, nullptr, 64),
            GetParam() == Wish::minor ? refused_cleanly : did);
}

// Two ranges never hang before the same pages of the file, however small it is.
TEST_P(Refusals, AFileThatIsTooSmallForTwo) {
  const int answer = in_child([&] {
    constexpr size_t pages = 20;
    Memory first(pages), second(pages);
    if (!limit(RLIMIT_FSIZE, 32 * page_bytes)) return 10;
    Choice choice;
    if (choice.start(GetParam()) != Outcome::ok) return int(not_started);
    Guard guard;
    guard.start(choice.mechanism());
    Region* region = guard.close({first.base, pages});
    if (!region) return 11;
    Region* other = guard.close({second.base, pages});
    if ((other == nullptr) != (GetParam() == Wish::minor)) return 12;
    for (Region* each : {region, other}) {
      if (each && !guard.arrived(each, 0, each->size())) return 13;
    }
    return int(did);
  });
  if (answer == not_started) GTEST_SKIP() << "not on this system";
  EXPECT_EQ(answer, did);
}

TEST_P(Refusals, AddressesAreLimited) {
  if (under_sanitizer) GTEST_SKIP() << "a sanitizer takes all addresses";
  const auto few = [] { return limit(RLIMIT_AS, 0); };
  EXPECT_EQ(under(GetParam(), nullptr, few, 64), refused_cleanly);
}

TEST_P(Refusals, NoDescriptorIsLeft) {
  const auto none = [] { return limit(RLIMIT_NOFILE, 3); };
  EXPECT_EQ(under(GetParam(), none, nullptr, 4), not_started);
  EXPECT_EQ(under(GetParam(), nullptr, none, 4), did);
}

TEST_P(Refusals, NoMappingIsLeft) {
  if (under_sanitizer) GTEST_SKIP() << "a sanitizer ends where there is no mapping left";
  const auto all = [] { return fill_mappings().size() > 1000; };
  EXPECT_EQ(under(GetParam(), nullptr, all, 16), refused_cleanly);
}

// The limit is reached while pages are closed, and they arrive in an order that needs the most.
TEST_P(Refusals, NoMappingIsLeftToOpenWith) {
  if (under_sanitizer) GTEST_SKIP() << "a sanitizer ends where there is no mapping left";
  const int answer = in_child([&] {
    constexpr size_t pages = 64;
    Memory memory(pages);
    Choice choice;
    if (choice.start(GetParam()) != Outcome::ok) return int(not_started);
    Guard guard;
    guard.start(choice.mechanism());
    Region* region = guard.close({memory.base, pages});
    if (!region) return 10;
    if (fill_mappings().size() < 1000) return 11;
    for (size_t i = 0; i < region->size(); ++i) region->view[i] = byte_of(3, i);
    for (size_t page = 1; page < pages; page += 2) {
      guard.arrived(region, page * page_bytes, page_bytes);
    }
    for (size_t page = 0; page < pages; page += 2) {
      const bool over = guard.arrived(region, page * page_bytes, page_bytes);
      if (over != (page == pages - 2)) return 12;
    }
    if (guard.any_closed()) return 13;
    for (size_t i = 0; i < memory.bytes; ++i) {
      if (memory.base[i] != byte_of(3, i)) return int(left_wrong);
    }
    return int(did);
  });
  EXPECT_EQ(answer, did);
}

// Of what is not private memory of the program, nothing may be replaced.
TEST_P(Refusals, MemoryOfAnotherKind) {
  Choice choice;
  ASSERT_EQ(choice.start(GetParam()), Outcome::ok);
  constexpr size_t pages = 4, bytes = pages * page_bytes;
  const auto answer = [&](void* memory) {
    memset(memory, 7, bytes);
    return try_to_close(*choice.mechanism(), {static_cast<char*>(memory), pages});
  };
  const int file = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, bytes), 0);
  constexpr int rw = PROT_READ | PROT_WRITE;
  EXPECT_EQ(answer(mmap(nullptr, bytes, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0)), refused_cleanly);
  EXPECT_EQ(answer(mmap(nullptr, bytes, rw, MAP_SHARED, file, 0)), refused_cleanly);
  if (has_curtain()) {
    EXPECT_EQ(answer(mmap(nullptr, bytes, rw, MAP_PRIVATE, file, 0)), refused_cleanly);
    EXPECT_EQ(answer(mmap(nullptr, bytes, rw | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
              refused_cleanly);
    alignas(page_bytes) char frame[bytes];
    EXPECT_EQ(answer(frame), refused_cleanly);
  }
  void* locked = mmap(nullptr, bytes, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_EQ(lock_page(static_cast<char*>(locked) + page_bytes), 0);
  EXPECT_EQ(answer(locked), refused_cleanly);
  void* large = mmap(nullptr, 2 << 20, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (large != MAP_FAILED) {
    EXPECT_EQ(answer(large), refused_cleanly);
  }
  close(file);
  choice.stop();
}

TEST_P(Refusals, PinnedPages) {
  Ring ring;
  Descriptor descriptor;
  descriptor.start_to_probe();
  const bool tells = descriptor.can_move();
  descriptor.stop();
  if (!tells) GTEST_SKIP() << "before Linux 6.8 nothing tells what is pinned";
  Choice choice;
  ASSERT_EQ(choice.start(GetParam()), Outcome::ok);
  constexpr size_t pages = 8;
  Memory memory(pages);
  const Range range{memory.base, pages};
  if (!ring.open() || !ring.pin(memory.base + 5 * page_bytes, page_bytes)) {
    GTEST_SKIP() << "io_uring is refused here";
  }
  const auto entry = [&](size_t page) {
    uint64_t found = 0;
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const off_t at = off_t(reinterpret_cast<uintptr_t>(memory.base) / page_bytes + page) * 8;
    if (fd >= 0 && pread(fd, &found, sizeof found, at) != sizeof found) found = 0;
    close(fd);
    return found & ((uint64_t(1) << 55) - 1);  // the frame; 0 for ordinary users
  };
  // Behind a curtain they keep their frames.
  const uint64_t frame = entry(5);
  EXPECT_EQ(try_to_close(*choice.mechanism(), range), has_curtain() ? did : refused_cleanly);
  EXPECT_EQ(entry(5), frame);
  ASSERT_TRUE(ring.unpin());
  EXPECT_EQ(try_to_close(*choice.mechanism(), range), did);
  choice.stop();
}

TEST(Missing, BeforeItCouldMovePages) {
  Missing missing;
  if (missing.start(false) != Outcome::ok) GTEST_SKIP() << "no userfaultfd";
  Memory memory(8);
  EXPECT_EQ(try_to_close(missing, {memory.base, 8}), did);
  ASSERT_EQ(lock_page(memory.base + 5 * page_bytes), 0);
  EXPECT_EQ(try_to_close(missing, {memory.base, 8}), refused_cleanly);
  missing.stop();
}

// Its pages cannot be moved either, until it has some of its own.
TEST_P(Refusals, MemoryThatAChildHas) {
  Choice choice;
  ASSERT_EQ(choice.start(GetParam()), Outcome::ok);
  Memory memory(8);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_EQ(try_to_close(*choice.mechanism(), {memory.base, 8}), did);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  choice.stop();
}

INSTANTIATE_TEST_SUITE_P(Every, Refusals, testing::ValuesIn(every_wish), wish_name);

// ------------------------------------------------------------------- handlers of the program

volatile int seen_faults = 0;
char* opened_by_program = nullptr;

// It repairs its own fault, as a garbage collector does.
void programs_handler(int, siginfo_t* info, void*) {
  seen_faults = seen_faults + 1;
  if (info->si_addr != opened_by_program) _exit(20);
  mprotect(opened_by_program, page_bytes, PROT_READ | PROT_WRITE);
}

TEST(Handlers, TheProgramGetsItsOwnFaults) {
  EXPECT_EQ(in_child([] {
              struct sigaction action {};
              action.sa_sigaction = programs_handler;
              action.sa_flags = SA_SIGINFO;
              sigaction(SIGSEGV, &action, nullptr);
              Choice choice;
              if (choice.start(Wish::trap) != Outcome::ok) return int(not_started);
              Memory own(1), ours(4);
              if (try_to_close(*choice.mechanism(), {ours.base, 4}) != did) return 5;
              opened_by_program = own.base;
              mprotect(own.base, page_bytes, PROT_NONE);
              *static_cast<volatile char*>(own.base) = 1;
              if (seen_faults != 1) return 6;
              choice.stop();
              struct sigaction now {};
              sigaction(SIGSEGV, nullptr, &now);
              return now.sa_sigaction == programs_handler ? int(did) : 7;
            }),
            did);
}

TEST(Handlers, AFaultOfNobodyEndsTheProcess) {
  EXPECT_EQ(in_child([] {
              rlimit no_core = {0, 0};
              setrlimit(RLIMIT_CORE, &no_core);
              signal(SIGSEGV, SIG_DFL);  // a sanitizer has its own
              Choice choice;
              if (choice.start(Wish::trap) != Outcome::ok) return int(not_started);
              volatile char* volatile nowhere = nullptr;
              nowhere[16] = 1;
              return 0;
            }),
            1000 + SIGSEGV);
}

// Then a touch of a closed page would be the program's affair.
TEST(Handlers, NothingIsClosedUnderALaterHandler) {
  EXPECT_EQ(in_child([] {
              Choice choice;
              if (choice.start(Wish::trap) != Outcome::ok) return int(not_started);
              struct sigaction action {};
              action.sa_sigaction = programs_handler;
              action.sa_flags = SA_SIGINFO;
              sigaction(SIGSEGV, &action, nullptr);
              Memory memory(4);
              return try_to_close(*choice.mechanism(), {memory.base, 4});
            }),
            refused_cleanly);
}

}  // namespace
}  // namespace headway::guard
