// The calculus of groups: every function against the same done with plain vectors of ranks.
#include <algorithm>

#include "check.h"

namespace {

MPI_Group world = MPI_GROUP_NULL;

// The world ranks of a group, by translation.
std::vector<int> members(MPI_Group group) {
  int size = -1;
  MPI(MPI_Group_size(group, &size));
  std::vector<int> own(size), there(size, -99);
  for (int i = 0; i < size; ++i) own[i] = i;
  MPI(MPI_Group_translate_ranks(group, size, own.data(), world, there.data()));
  return there;
}

void expect(MPI_Group group, const std::vector<int>& wanted, const char* what) {
  std::vector<int> got = members(group);
  if (got != wanted) {
    std::string text;
    for (int r : got) text += std::to_string(r) + " ";
    text += "expected ";
    for (int r : wanted) text += std::to_string(r) + " ";
    check::fail(__FILE__, __LINE__, "%s: %s", what, text.c_str());
  }
  int rank = -77;
  MPI(MPI_Group_rank(group, &rank));
  auto me = std::find(wanted.begin(), wanted.end(), check::rank);
  CHECK_EQ(rank, me == wanted.end() ? static_cast<long>(MPI_UNDEFINED) : me - wanted.begin());
}

MPI_Group make(const std::vector<int>& ranks) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI(MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group));
  return group;
}

std::vector<int> random_ranks(check::Random& random) {
  std::vector<int> ranks;
  for (int r = 0; r < check::size; ++r) {
    if (random.chance(50)) ranks.push_back(r);
  }
  random.shuffle(ranks);
  return ranks;
}

bool has(const std::vector<int>& v, int r) { return std::find(v.begin(), v.end(), r) != v.end(); }

int compared(MPI_Group a, MPI_Group b) {
  int result = -1;
  MPI(MPI_Group_compare(a, b, &result));
  return result;
}

void set_operations() {
  check::Random random(check::seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> a = random_ranks(random), b = random_ranks(random), both, in, minus;
    both = a;
    for (int r : b) {
      if (!has(a, r)) both.push_back(r);
    }
    for (int r : a) (has(b, r) ? in : minus).push_back(r);
    MPI_Group ga = make(a), gb = make(b), g = MPI_GROUP_NULL;
    expect(ga, a, "incl");
    MPI(MPI_Group_union(ga, gb, &g));
    expect(g, both, "union");
    MPI(MPI_Group_free(&g));
    MPI(MPI_Group_intersection(ga, gb, &g));
    expect(g, in, "intersection");
    MPI(MPI_Group_free(&g));
    MPI(MPI_Group_difference(ga, gb, &g));
    expect(g, minus, "difference");
    MPI(MPI_Group_free(&g));
    std::vector<int> sorted_a = a, sorted_b = b;
    std::sort(sorted_a.begin(), sorted_a.end());
    std::sort(sorted_b.begin(), sorted_b.end());
    CHECK_EQ(compared(ga, gb), a == b                 ? MPI_IDENT
                               : sorted_a == sorted_b ? MPI_SIMILAR
                                                      : MPI_UNEQUAL);
    MPI(MPI_Group_free(&ga));
    CHECK_EQ(ga, MPI_GROUP_NULL);
    MPI(MPI_Group_free(&gb));
  }
}

void excl() {
  check::Random random(check::seed + 1);
  for (int round = 0; round < 100; ++round) {
    std::vector<int> base = random_ranks(random), out, rest;
    for (int i = 0; i < static_cast<int>(base.size()); ++i) {
      if (random.chance(40)) out.push_back(i);
    }
    for (int i = 0; i < static_cast<int>(base.size()); ++i) {
      if (!has(out, i)) rest.push_back(base[i]);
    }
    random.shuffle(out);
    MPI_Group g = make(base), h = MPI_GROUP_NULL;
    MPI(MPI_Group_excl(g, static_cast<int>(out.size()), out.data(), &h));
    expect(h, rest, "excl");
    MPI(MPI_Group_free(&g));
    MPI(MPI_Group_free(&h));
  }
}

// Ranges forwards, backwards, with strides that do not hit the end.
void ranges() {
  int n = check::size;
  std::vector<std::vector<int>> all = {
      {0, n - 1, 1}, {n - 1, 0, -1}, {0, n - 1, 2}, {n - 1, 0, -2}, {0, 0, 1}};
  for (auto& r : all) {
    int range[1][3] = {{r[0], r[1], r[2]}};
    std::vector<int> wanted, rest;
    for (int i = r[0]; r[2] > 0 ? i <= r[1] : i >= r[1]; i += r[2]) wanted.push_back(i);
    for (int i = 0; i < n; ++i) {
      if (!has(wanted, i)) rest.push_back(i);
    }
    MPI_Group g = MPI_GROUP_NULL;
    MPI(MPI_Group_range_incl(world, 1, range, &g));
    expect(g, wanted, "range_incl");
    MPI(MPI_Group_free(&g));
    MPI(MPI_Group_range_excl(world, 1, range, &g));
    expect(g, rest, "range_excl");
    MPI(MPI_Group_free(&g));
  }
  if (n >= 4) {
    int two[2][3] = {{n - 1, n - 2, -1}, {0, 1, 1}};
    MPI_Group g = MPI_GROUP_NULL;
    MPI(MPI_Group_range_incl(world, 2, two, &g));
    expect(g, {n - 1, n - 2, 0, 1}, "two ranges");
    MPI(MPI_Group_free(&g));
  }
  MPI_Group g = MPI_GROUP_NULL;
  MPI(MPI_Group_range_incl(world, 0, nullptr, &g));
  CHECK_EQ(compared(g, MPI_GROUP_EMPTY), MPI_IDENT);
  if (g != MPI_GROUP_EMPTY) MPI(MPI_Group_free(&g));
}

void translate() {
  std::vector<int> odd;
  for (int r = 1; r < check::size; r += 2) odd.push_back(r);
  MPI_Group g = make(odd);
  std::vector<int> from(check::size + 1), to(check::size + 1, -5);
  for (int r = 0; r < check::size; ++r) from[r] = r;
  from[check::size] = MPI_PROC_NULL;
  MPI(MPI_Group_translate_ranks(world, check::size + 1, from.data(), g, to.data()));
  for (int r = 0; r < check::size; ++r) CHECK_EQ(to[r], r % 2 ? r / 2 : MPI_UNDEFINED);
  CHECK_EQ(to[check::size], MPI_PROC_NULL);
  MPI(MPI_Group_free(&g));
}

void empty() {
  int size = -1, rank = -1;
  MPI(MPI_Group_size(MPI_GROUP_EMPTY, &size));
  CHECK_EQ(size, 0);
  MPI(MPI_Group_rank(MPI_GROUP_EMPTY, &rank));
  CHECK_EQ(rank, MPI_UNDEFINED);
  MPI_Group g = MPI_GROUP_NULL;
  MPI(MPI_Group_difference(world, world, &g));
  CHECK_EQ(compared(g, MPI_GROUP_EMPTY), MPI_IDENT);
  if (g != MPI_GROUP_EMPTY) MPI(MPI_Group_free(&g));
}

// A group outlives its communicator, and bad ranks are told.
void lives_and_errors() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Group g = MPI_GROUP_NULL, h = MPI_GROUP_NULL;
  MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI(MPI_Comm_group(comm, &g));
  MPI(MPI_Comm_free(&comm));
  CHECK_EQ(compared(g, world), MPI_IDENT);
  int bad = check::size, twice[2] = {0, 0};
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Group_incl(g, 1, &bad, &h));
  CHECK(MPI_Group_incl(g, 2, twice, &h) != MPI_SUCCESS);
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Group_translate_ranks(g, 1, &bad, world, twice));
  EXPECT_CLASS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &bad));
  MPI(MPI_Group_free(&g));
}

}  // namespace

int main(int argc, char** argv) {
  auto with_world = [](void (*body)()) {
    MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
    body();
    MPI(MPI_Group_free(&world));
  };
  static auto run = with_world;
  return check::main(argc, argv,
                     {{"set_operations", [] { run(set_operations); }},
                      {"excl", [] { run(excl); }},
                      {"ranges", [] { run(ranges); }},
                      {"translate", [] { run(translate); }},
                      {"empty", [] { run(empty); }},
                      {"lives_and_errors", [] { run(lives_and_errors); }}});
}
