// The collectives of inter-communicators: roots on either side, sides of many sizes, lengths on
// both sides of every limit, straight ways and those in phases; the ranks in one process, in any
// order that a seed makes (HEADWAY_TEST_SEED, HEADWAY_TEST_SEEDS). Operations do not commute.
#include "collectives/inter.h"

#include <cstring>
#include <utility>
#include <vector>

#include "collectives/schedule_test_world.h"

namespace headway::collectives {
namespace {

using Values = std::vector<int64_t>;

int64_t value_of(size_t one, int64_t index, int64_t salt) {
  uint64_t x = uint64_t(one) * 0x9e3779b97f4a7c15 + uint64_t(index) * 0xbf58476d1ce4e5b9 +
               uint64_t(salt) * 0x94d049bb133111eb;
  x = (x ^ x >> 31) * 0xd6e8feb86659fd93;
  return int64_t(x ^ x >> 32);
}
Values values(size_t one, int count, int64_t salt) {
  Values all(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) all[size_t(i)] = value_of(one, i, salt);
  return all;
}
void add(Values& all, const Values& more) { all.insert(all.end(), more.begin(), more.end()); }

Data data_of(Values& all) { return {all.data(), all.size(), World::type()}; }
Blocks blocks_of(Values& all, int count) {
  return Blocks::even(all.data(), uint64_t(count), World::type());
}

// Below and above 2 KB, 16 KB and 64 KB; above what one piece for each rank has.
constexpr int counts[] = {0, 1, 5, 300, 1500, 3000, 9001};
constexpr std::pair<int, int> shapes[] = {{1, 1}, {1, 3}, {3, 1}, {2, 5}, {4, 4}, {7, 2}, {5, 6}};

// body(world, count), in each world some times.
template <class Body>
void everywhere(Body&& body) {
  const uint64_t first = from_environment("HEADWAY_TEST_SEED", 1);
  const uint64_t seeds = from_environment("HEADWAY_TEST_SEEDS", 3);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    for (const Algorithm forced : {Algorithm::binomial, Algorithm::direct}) {
      for (const auto& [left, right] : shapes) {
        for (const int count : counts) {
          SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << name_of(forced) << ", "
                                          << left << " + " << right << ", " << count);
          World world(left, right, forced, seed * 1000 + uint64_t(count));
          body(world, count);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// body(side of the root, its rank), for the ends and the middle.
template <class Body>
void each_root(const World& world, Body&& body) {
  for (int side = 0; side < 2; ++side) {
    for (int root = 0; root < world.size(side); ++root) {
      const bool is_end = root == 0 || root == world.size(side) - 1;
      if (is_end || root == world.size(side) / 2) body(side, root);
    }
  }
}

TEST(Inter, Barrier) {
  everywhere([](World& world, int) {
    world.play([&](size_t one) { return barrier(world.place(one)); }, true);
  });
}

TEST(Inter, Bcast) {
  everywhere([](World& world, int count) {
    each_root(world, [&](int side, int root) {
      const size_t sender = world.number(side, root);
      std::vector<Values> all(world.ranks(), Values(size_t(count), -1));
      all[sender] = values(sender, count, 1);
      world.play([&](size_t one) {
        return bcast(world.place(one), data_of(all[one]), world.root_for(one, side, root));
      });
      for (size_t one = 0; one < world.ranks(); ++one) {
        const bool gets = one == sender || world.side(one) != side;
        EXPECT_EQ(all[one], gets ? all[sender] : Values(size_t(count), -1));
      }
    });
  });
}

TEST(Inter, GatherAndScatter) {
  everywhere([](World& world, int count) {
    each_root(world, [&](int side, int root) {
      const size_t center = world.number(side, root);
      const int others = world.size(1 - side);
      Values wanted, got(size_t(count * others), -1);
      std::vector<Values> given(world.ranks());
      for (int r = 0; r < others; ++r) {
        const size_t one = world.number(1 - side, r);
        given[one] = values(one, count, 2);
        add(wanted, given[one]);
      }
      const auto blocks = [&](size_t one, Values& all) {
        return one == center ? blocks_of(all, count) : Blocks();
      };
      const auto data = [&](size_t one, std::vector<Values>& all) {
        return world.side(one) == side ? Data() : data_of(all[one]);
      };
      world.play([&](size_t one) {
        return gather(world.place(one), data(one, given), blocks(one, got),
                      world.root_for(one, side, root));
      });
      EXPECT_EQ(got, wanted);
      std::vector<Values> dealt(world.ranks(), Values(size_t(count), -1));
      world.play([&](size_t one) {
        return scatter(world.place(one), blocks(one, got), data(one, dealt),
                       world.root_for(one, side, root));
      });
      for (int r = 0; r < others; ++r) {
        const size_t one = world.number(1 - side, r);
        EXPECT_EQ(dealt[one], given[one]);
      }
    });
  });
}

// Each side sends another amount.
TEST(Inter, Allgather) {
  everywhere([](World& world, int count) {
    const auto amount = [&](size_t one) { return world.side(one) ? count / 2 : count; };
    std::vector<Values> in, out, wanted(world.ranks());
    for (size_t one = 0; one < world.ranks(); ++one) {
      in.push_back(values(one, amount(one), 3));
      for (int r = 0; r < world.size(1 - world.side(one)); ++r) {
        const size_t other = world.number(1 - world.side(one), r);
        add(wanted[one], values(other, amount(other), 3));
      }
      out.emplace_back(wanted[one].size(), -1);
    }
    const auto play = [&](Schedule* (*build)(const Place&, const Data&, const Blocks&)) {
      for (Values& one : out) one.assign(one.size(), -1);
      world.play([&](size_t one) {
        const int beyond = world.side(one) ? count : count / 2;
        return build(world.place(one), data_of(in[one]), blocks_of(out[one], beyond));
      });
      EXPECT_EQ(out, wanted);
    };
    play(&allgather);
    play(&allgatherv);
  });
}

TEST(Inter, Alltoall) {
  everywhere([](World& world, int count) {
    std::vector<Values> in(world.ranks()), out, wanted(world.ranks());
    for (size_t one = 0; one < world.ranks(); ++one) {
      for (int r = 0; r < world.size(1 - world.side(one)); ++r) {
        const size_t other = world.number(1 - world.side(one), r);
        add(in[one], values(one, count, 10 + int64_t(other)));
        add(wanted[one], values(other, count, 10 + int64_t(one)));
      }
      out.emplace_back(wanted[one].size(), -1);
    }
    world.play([&](size_t one) {
      return alltoall(world.place(one), blocks_of(in[one], count), blocks_of(out[one], count));
    });
    EXPECT_EQ(out, wanted);
  });
}

// So many ranks that they do not all talk at once.
TEST(Inter, AlltoallOfMany) {
  for (const auto& [left, right] : {std::pair(40, 37), std::pair(3, 70)}) {
    World world(left, right, Algorithm::binomial, uint64_t(left));
    std::vector<Values> in(world.ranks()), out, wanted(world.ranks());
    for (size_t one = 0; one < world.ranks(); ++one) {
      for (int r = 0; r < world.size(1 - world.side(one)); ++r) {
        const size_t other = world.number(1 - world.side(one), r);
        add(in[one], values(one, 2, 10 + int64_t(other)));
        add(wanted[one], values(other, 2, 10 + int64_t(one)));
      }
      out.emplace_back(wanted[one].size(), -1);
    }
    world.play([&](size_t one) {
      return alltoall(world.place(one), blocks_of(in[one], 2), blocks_of(out[one], 2));
    });
    EXPECT_EQ(out, wanted);
  }
}

// The vectors of a side as Lines, one behind the other.
Values folded(const World& world, int side, int count, int64_t salt) {
  std::vector<Line> all, next(static_cast<size_t>(count));
  for (int r = 0; r < world.size(side); ++r) {
    const Values mine = values(world.number(side, r), count, salt);
    if (count) memcpy(next.data(), mine.data(), mine.size() * sizeof(int64_t));
    if (r == 0) all = next;
    for (size_t i = 0; r > 0 && i < all.size(); ++i) all[i] = then(all[i], next[i]);
  }
  Values result(all.size());
  if (count) memcpy(result.data(), all.data(), all.size() * sizeof(Line));
  return result;
}

TEST(Inter, Reduce) {
  everywhere([](World& world, int count) {
    each_root(world, [&](int side, int root) {
      const size_t center = world.number(side, root);
      std::vector<Values> in;
      Values out(size_t(count), -1);
      for (size_t one = 0; one < world.ranks(); ++one) in.push_back(values(one, count, 4));
      const std::vector<Values> before = in;
      world.play([&](size_t one) {
        return reduce(world.place(one), world.side(one) == side ? Data() : data_of(in[one]),
                      one == center ? data_of(out) : Data(), world.reduction(),
                      world.root_for(one, side, root));
      });
      EXPECT_EQ(out, folded(world, 1 - side, count, 4));
      EXPECT_EQ(in, before);
    });
  });
}

TEST(Inter, Allreduce) {
  everywhere([](World& world, int count) {
    std::vector<Values> in, out(world.ranks(), Values(size_t(count), -1));
    for (size_t one = 0; one < world.ranks(); ++one) in.push_back(values(one, count, 5));
    const std::vector<Values> before = in;
    world.play([&](size_t one) {
      return allreduce(world.place(one), data_of(in[one]), data_of(out[one]), world.reduction());
    });
    for (size_t one = 0; one < world.ranks(); ++one) {
      EXPECT_EQ(out[one], folded(world, 1 - world.side(one), count, 5));
    }
    EXPECT_EQ(in, before);
  });
}

// Of what one rank has folded, each part crosses by itself.
TEST(Inter, AllreduceInParts) {
  constexpr int count = 40'001;
  for (const auto& [left, right] : {std::pair(1, 3), std::pair(2, 5), std::pair(4, 1)}) {
    World world(left, right, Algorithm::binomial, uint64_t(right));
    std::vector<Values> in, out(world.ranks(), Values(size_t(count), -1));
    for (size_t one = 0; one < world.ranks(); ++one) in.push_back(values(one, count, 9));
    world.play([&](size_t one) {
      return allreduce(world.place(one), data_of(in[one]), data_of(out[one]), world.reduction());
    });
    for (size_t one = 0; one < world.ranks(); ++one) {
      EXPECT_EQ(out[one], folded(world, 1 - world.side(one), count, 9));
    }
  }
}

// Blocks that differ, some of them empty; then equal ones.
TEST(Inter, ReduceScatter) {
  everywhere([](World& world, int count) {
    std::vector<std::vector<int>> lengths(2);
    for (int side = 0; side < 2; ++side) {
      int left = count;
      for (int r = 0; r < world.size(side); ++r) {
        const bool is_last = r == world.size(side) - 1;
        lengths[size_t(side)].push_back(is_last ? left : r % 3 == 1 ? 0 : left / (2 + r));
        left -= lengths[size_t(side)].back();
      }
    }
    std::vector<Values> in, out;
    for (size_t one = 0; one < world.ranks(); ++one) {
      in.push_back(values(one, count, 6));
      const int length = lengths[size_t(world.side(one))][size_t(world.rank(one))];
      out.emplace_back(size_t(length), -1);
    }
    world.play([&](size_t one) {
      const std::vector<int>& own = lengths[size_t(world.side(one))];
      return reduce_scatter(world.place(one), data_of(in[one]), out[one].data(),
                            datatypes::Integers(own.data()), world.reduction());
    });
    for (int side = 0; side < 2; ++side) {
      const Values whole = folded(world, 1 - side, count, 6);
      auto at = whole.begin();
      for (int r = 0; r < world.size(side); ++r) {
        const auto end = at + lengths[size_t(side)][size_t(r)];
        EXPECT_EQ(out[world.number(side, r)], Values(at, end));
        at = end;
      }
    }
    const int each = (count + 11) / 12, all = each * world.size(0) * world.size(1);
    for (size_t one = 0; one < world.ranks(); ++one) {
      in[one] = values(one, all, 7);
      out[one].assign(size_t(all / world.size(world.side(one))), -1);
    }
    world.play([&](size_t one) {
      return reduce_scatter_block(world.place(one), data_of(in[one]), out[one].data(),
                                  out[one].size(), world.reduction());
    });
    for (size_t one = 0; one < world.ranks(); ++one) {
      const Values whole = folded(world, 1 - world.side(one), all, 7);
      const auto at = whole.begin() + std::ptrdiff_t(out[one].size()) * world.rank(one);
      EXPECT_EQ(out[one], Values(at, at + std::ptrdiff_t(out[one].size())));
    }
  });
}

// What makers of communicators use.
TEST(Inter, TellAndShare) {
  everywhere([](World& world, int) {
    for (const bool by_leading : {true, false}) {
      const size_t teller = world.number(by_leading ? 0 : 1, 0);
      std::vector<Values> told(world.ranks(), Values(2, -1));
      told[teller] = {41, 42};
      world.play([&](size_t one) {
        return inter::tell(world.place(one), data_of(told[one]), by_leading);
      });
      EXPECT_EQ(told, std::vector<Values>(world.ranks(), {41, 42}));
    }
    std::vector<Values> row, own, others, wanted(2);
    for (size_t one = 0; one < world.ranks(); ++one) {
      row.push_back(values(one, 3, 8));
      add(wanted[size_t(world.side(one))], row[one]);
    }
    for (size_t one = 0; one < world.ranks(); ++one) {
      own.emplace_back(wanted[size_t(world.side(one))].size(), -1);
      others.emplace_back(wanted[size_t(1 - world.side(one))].size(), -1);
    }
    world.play([&](size_t one) {
      return inter::share(world.place(one), data_of(row[one]), blocks_of(own[one], 3),
                          blocks_of(others[one], 3));
    });
    for (size_t one = 0; one < world.ranks(); ++one) {
      EXPECT_EQ(own[one], wanted[size_t(world.side(one))]);
      EXPECT_EQ(others[one], wanted[size_t(1 - world.side(one))]);
    }
  });
}

}  // namespace
}  // namespace headway::collectives
