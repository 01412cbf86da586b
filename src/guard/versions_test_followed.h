// What the tests of versions share: memory of a program whose writes are followed, both ways, and
// what a sender does with it. Thread: each test's own. Owner: the test. Invariant: a way that this
// system does not give is skipped, with the reason.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/sanitizer.h"
#include "guard/guard_test_closed.h"
#include "guard/versions.h"

namespace headway::guard {

inline std::string way_name(const testing::TestParamInfo<Versions::Wish>& info) {
  return info.param == Versions::Wish::signal     ? "signal"
         : info.param == Versions::Wish::thorough ? "thorough"
                                                  : "watch";
}

inline constexpr Versions::Wish every_way[] = {Versions::Wish::watch, Versions::Wish::thorough,
                                               Versions::Wish::signal};

// A copy of memory that is brought up to date page by page, as a receiver's is.
class Copy {
 public:
  Copy(const char* from, size_t pages)
      : from_(from), bytes_(pages * page_bytes), versions_(pages, 0) {}

  // Takes what has changed since the last time; pages, or -1 if nothing is known any more.
  int take(Versions& versions) {
    if (!versions.look(from_, bytes_.size())) {
      versions_.assign(versions_.size(), 0);
      return -1;
    }
    int taken = 0;
    for (size_t i = 0; i < versions_.size(); ++i) {
      const char* page = from_ + i * page_bytes;
      if (versions.version(page) == versions_[i]) continue;
      versions_[i] = versions.version(page);
      base::copy_pages(&bytes_[i * page_bytes], page, page_bytes);
      ++taken;
    }
    return taken;
  }
  // The pages that have changed since they were taken; none is taken.
  std::vector<size_t> changed(Versions& versions) const {
    EXPECT_TRUE(versions.look(from_, bytes_.size()));
    std::vector<size_t> pages;
    for (size_t i = 0; i < versions_.size(); ++i) {
      if (versions.version(from_ + i * page_bytes) != versions_[i]) pages.push_back(i);
    }
    return pages;
  }
  // While nobody writes: those which did not change are equal. The first that is not, or -1.
  int first_wrong(const Versions& versions) const {
    for (size_t i = 0; i < versions_.size(); ++i) {
      const char* page = from_ + i * page_bytes;
      if (versions.version(page) != versions_[i]) continue;
      if (memcmp(page, &bytes_[i * page_bytes], page_bytes) != 0) return int(i);
    }
    return -1;
  }

 private:
  const char* from_;
  std::vector<char> bytes_;
  std::vector<uint32_t> versions_;
};

using Pages = std::vector<size_t>;

// In no page that a test may use: those are away for a moment.
inline Versions& fresh_versions() {
  static Versions versions;
  versions.counters = {};
  return versions;
}

class Followed : public testing::TestWithParam<Versions::Wish> {
 protected:
  void SetUp() override {
    if (versions_.start(nullptr, GetParam()) != Outcome::ok) {
      GTEST_SKIP() << "cannot be tested here: " << versions_.why();
    }
  }
  void TearDown() override { versions_.stop(); }
  bool by_signal() const { return GetParam() == Versions::Wish::signal; }

  Versions& versions_ = fresh_versions();
};

}  // namespace headway::guard
