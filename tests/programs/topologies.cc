// Cartesian topologies: grids of all shapes that the ranks fill, smaller ones, parts of them, data
// that goes around them, and duplicates; the lengths that MPI_Dims_create chooses; what is refused.
#include "check.h"

namespace {

MPI_Comm make(const std::vector<int>& lengths, const std::vector<int>& periods,
              MPI_Comm from = MPI_COMM_WORLD) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI(MPI_Cart_create(from, static_cast<int>(lengths.size()), lengths.data(), periods.data(), 1,
                      &made));
  return made;
}

std::vector<int> coordinates(MPI_Comm cart, int rank) {
  int dimensions = -1;
  MPI(MPI_Cartdim_get(cart, &dimensions));
  std::vector<int> at(dimensions, -1);
  MPI(MPI_Cart_coords(cart, rank, dimensions, at.data()));
  return at;
}

int topology(MPI_Comm comm) {
  int kind = -1;
  MPI(MPI_Topo_test(comm, &kind));
  return kind;
}

int size_of(MPI_Comm comm) {
  int size = -1;
  MPI(MPI_Comm_size(comm, &size));
  return size;
}

// Every rank's number goes one step along every dimension, and arrives where it should.
void exchange(MPI_Comm cart, const std::vector<int>& lengths, const std::vector<int>& periods) {
  int rank = -1;
  MPI(MPI_Comm_rank(cart, &rank));
  for (int dimension = 0; dimension < static_cast<int>(lengths.size()); ++dimension) {
    for (int step : {1, -1, 2, 100}) {
      int from = -5, to = -5, got = -1;
      MPI(MPI_Cart_shift(cart, dimension, step, &from, &to));
      MPI(MPI_Sendrecv(&rank, 1, MPI_INT, to, dimension, &got, 1, MPI_INT, from, dimension, cart,
                       MPI_STATUS_IGNORE));
      std::vector<int> at = coordinates(cart, rank);
      at[dimension] -= step;
      const bool inside = at[dimension] >= 0 && at[dimension] < lengths[dimension];
      int expected = -1;
      if (inside || periods[dimension]) MPI(MPI_Cart_rank(cart, at.data(), &expected));
      CHECK_EQ(got, expected);
      CHECK_EQ(from, expected < 0 ? MPI_PROC_NULL : expected);
    }
  }
}

void grids() {
  for (int dimensions = 1; dimensions <= 4; ++dimensions) {
    std::vector<int> lengths(dimensions, 0), periods(dimensions);
    MPI(MPI_Dims_create(check::size, dimensions, lengths.data()));
    int product = 1;
    for (int i = 0; i < dimensions; ++i) {
      periods[i] = i % 2;
      product *= lengths[i];
      if (i > 0) CHECK(lengths[i] <= lengths[i - 1]);
    }
    CHECK_EQ(product, check::size);
    MPI_Comm cart = make(lengths, periods);
    CHECK_EQ(size_of(cart), check::size);
    CHECK_EQ(topology(cart), MPI_CART);
    std::vector<int> got_lengths(dimensions), got_periods(dimensions), at(dimensions);
    MPI(MPI_Cart_get(cart, dimensions, got_lengths.data(), got_periods.data(), at.data()));
    CHECK(got_lengths == lengths && got_periods == periods);
    int rank = -1, again = -1;
    MPI(MPI_Comm_rank(cart, &rank));
    CHECK(at == coordinates(cart, rank));
    MPI(MPI_Cart_rank(cart, at.data(), &again));
    CHECK_EQ(again, rank);
    MPI(MPI_Cart_map(MPI_COMM_WORLD, dimensions, lengths.data(), periods.data(), &again));
    CHECK_EQ(again, rank);
    exchange(cart, lengths, periods);
    MPI_Comm copy = MPI_COMM_NULL, plain = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI(MPI_Comm_idup(cart, &copy, &request));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI(MPI_Comm_split(cart, 0, 0, &plain));
    MPI(MPI_Comm_free(&cart));
    CHECK_EQ(topology(plain), MPI_UNDEFINED);
    CHECK_EQ(topology(copy), MPI_CART);
    MPI(MPI_Comm_dup(copy, &cart));
    exchange(cart, lengths, periods);
    for (MPI_Comm* one : {&cart, &copy, &plain}) MPI(MPI_Comm_free(one));
  }
  CHECK_EQ(topology(MPI_COMM_WORLD), MPI_UNDEFINED);
}

// Ranks that find no place get no communicator.
void smaller() {
  const int length = (check::size + 1) / 2, period = 1;
  MPI_Comm cart = make({length}, {period});
  int place = -1;
  MPI(MPI_Cart_map(MPI_COMM_WORLD, 1, &length, &period, &place));
  if (check::rank >= length) {
    CHECK_EQ(cart, MPI_COMM_NULL);
    CHECK_EQ(place, MPI_UNDEFINED);
    return;
  }
  CHECK_EQ(place, check::rank);
  CHECK_EQ(size_of(cart), length);
  exchange(cart, {length}, {1});
  MPI(MPI_Comm_free(&cart));
}

void without_dimensions() {
  MPI_Comm cart = make({}, {});
  CHECK_EQ(cart == MPI_COMM_NULL, check::rank != 0);
  if (cart == MPI_COMM_NULL) return;
  CHECK_EQ(topology(cart), MPI_CART);
  int number = -1;
  MPI(MPI_Cartdim_get(cart, &number));
  CHECK_EQ(number, 0);
  MPI(MPI_Cart_get(cart, 0, nullptr, nullptr, nullptr));
  MPI(MPI_Cart_coords(cart, 0, 0, nullptr));
  MPI(MPI_Cart_rank(cart, nullptr, &number));
  CHECK_EQ(number, 0);
  MPI_Comm part = MPI_COMM_NULL;
  MPI(MPI_Cart_sub(cart, nullptr, &part));
  CHECK_EQ(topology(part), MPI_CART);
  MPI(MPI_Comm_free(&part));
  MPI(MPI_Comm_free(&cart));
}

// Rows, columns, planes: members have the coordinates that were dropped in common.
void parts() {
  std::vector<int> lengths(3, 0), periods{1, 0, 1};
  MPI(MPI_Dims_create(check::size, 3, lengths.data()));
  MPI_Comm cart = make(lengths, periods);
  int rank = -1;
  MPI(MPI_Comm_rank(cart, &rank));
  const std::vector<int> here = coordinates(cart, rank);
  for (int mask = 0; mask < 8; ++mask) {
    const int remain[] = {mask & 1, mask & 2, mask & 4};
    MPI_Comm part = MPI_COMM_NULL;
    MPI(MPI_Cart_sub(cart, remain, &part));
    std::vector<int> left_lengths, left_periods, left_here;
    int expected = 1;
    for (int i = 0; i < 3; ++i) {
      if (!remain[i]) continue;
      left_lengths.push_back(lengths[i]);
      left_periods.push_back(periods[i]);
      left_here.push_back(here[i]);
      expected *= lengths[i];
    }
    CHECK_EQ(size_of(part), expected);
    int own = -1;
    MPI(MPI_Comm_rank(part, &own));
    CHECK(coordinates(part, own) == left_here);
    std::vector<int> all(3 * static_cast<size_t>(expected));
    MPI(MPI_Allgather(here.data(), 3, MPI_INT, all.data(), 3, MPI_INT, part));
    for (int member = 0; member < expected; ++member) {
      for (int i = 0; i < 3; ++i) {
        if (!remain[i]) CHECK_EQ(all[3 * static_cast<size_t>(member) + i], here[i]);
      }
    }
    exchange(part, left_lengths, left_periods);
    MPI(MPI_Comm_free(&part));
  }
  MPI(MPI_Comm_free(&cart));
}

void dims() {
  const struct {
    int nodes;
    std::vector<int> given, expected;
  } rows[] = {
      {12, {0, 0}, {4, 3}},
      {16, {0, 0, 0}, {4, 2, 2}},
      {24, {0, 0, 0}, {4, 3, 2}},
      {7, {0, 0}, {7, 1}},
      {6, {0, 3, 0}, {2, 3, 1}},
      {1, {0, 0, 0}, {1, 1, 1}},
      {4096, {0, 0, 0}, {16, 16, 16}},
      {60, {0, 0, 5}, {4, 3, 5}},
  };
  for (const auto& row : rows) {
    std::vector<int> got = row.given;
    MPI(MPI_Dims_create(row.nodes, static_cast<int>(got.size()), got.data()));
    CHECK(got == row.expected);
  }
  MPI(MPI_Dims_create(5, 0, nullptr));
}

void refused() {
  MPI_Comm cart = make({check::size}, {0}), other = MPI_COMM_NULL;
  int number = 0, more = 0, zero = 0, one = 1;
  EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(MPI_COMM_WORLD, &number));
  EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Cart_shift(MPI_COMM_SELF, 0, 1, &number, &more));
  EXPECT_CLASS(MPI_ERR_TOPOLOGY, MPI_Cart_sub(MPI_COMM_WORLD, &one, &other));
  EXPECT_CLASS(MPI_ERR_COMM, MPI_Topo_test(MPI_COMM_NULL, &number));
  int beyond = check::size, before = -1;
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Cart_rank(cart, &beyond, &number));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Cart_rank(cart, &before, &number));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Cart_coords(cart, check::size, 1, &number));
  EXPECT_CLASS(MPI_ERR_RANK, MPI_Cart_coords(cart, -1, 1, &number));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Cart_coords(cart, 0, 0, &number));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Cart_get(cart, 0, &number, &number, &number));
  EXPECT_CLASS(MPI_ERR_DIMS, MPI_Cart_shift(cart, 1, 1, &number, &more));
  EXPECT_CLASS(MPI_ERR_DIMS, MPI_Cart_shift(cart, -1, 1, &number, &more));
  EXPECT_CLASS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 1, &zero, &one, 0, &other));
  EXPECT_CLASS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, -1, &one, &one, 0, &other));
  int many = check::size + 1;
  EXPECT_CLASS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 1, &many, &one, 0, &other));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Cart_create(MPI_COMM_WORLD, 1, nullptr, &one, 0, &other));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &one, 0, nullptr));
  int lengths[] = {0, 5};
  EXPECT_CLASS(MPI_ERR_DIMS, MPI_Dims_create(12, 2, lengths));
  lengths[1] = -1;
  EXPECT_CLASS(MPI_ERR_DIMS, MPI_Dims_create(12, 2, lengths));
  EXPECT_CLASS(MPI_ERR_DIMS, MPI_Dims_create(12, -1, lengths));
  EXPECT_CLASS(MPI_ERR_ARG, MPI_Dims_create(0, 1, lengths));
  MPI(MPI_Comm_free(&cart));
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"grids", grids},
                      {"smaller", smaller},
                      {"without_dimensions", without_dimensions},
                      {"parts", parts},
                      {"dims", dims},
                      {"refused", refused}});
}
