// Collectives that move data: Barrier, Bcast, Gather, Scatter, Allgather, Alltoall; blocking and
// immediate (or persistent), from 0 bytes to 1 MB, every root, in place, derived datatypes.
#include <algorithm>
#include <time.h>
#include <unistd.h>

#include "coll.h"

namespace {

using coll::everywhere;
using coll::guard;
using coll::Place;
using coll::value;

const std::vector<int> counts = {0, 1, 3, 100, 1024, 5000, 40000, 262144};
const std::vector<int> block_counts = {0, 1, 3, 40, 1024, 5000, 20000};

void fill_block(int* to, int count, int rank, int salt) {
  for (int i = 0; i < count; ++i) to[i] = value(rank, i, salt);
}
void check_block(const int* from, int count, int rank, int salt) {
  for (int i = 0; i < count; ++i) {
    if (from[i] != value(rank, i, salt))
      check::fail(__FILE__, __LINE__, "element %d of %d from rank %d is %08x, expected %08x", i,
                  count, rank, from[i], value(rank, i, salt));
  }
}

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);  // the same for all ranks of a machine
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// Nobody leaves before the last has come.
void barrier() {
  everywhere([](const Place& p) {
    for (int round = 0; round < 2 * p.size; ++round) {
      if (round % p.size == p.rank) usleep(2000);
      int64_t times[2] = {now(), 0};
      coll::barrier(p.comm);
      times[1] = now();
      std::vector<int64_t> all(2 * p.size);
      MPI(MPI_Gather(times, 2, MPI_INT64_T, all.data(), 2, MPI_INT64_T, 0, p.comm));
      if (p.rank != 0) continue;
      for (int a = 0; a < p.size; ++a) {
        for (int b = 0; b < p.size; ++b) CHECK(all[2 * a] <= all[2 * b + 1]);
      }
    }
  });
}

void bcast() {
  everywhere([](const Place& p) {
    for (int count : counts) {
      for (int root : coll::roots(p.size, count)) {
        std::vector<int> data(count + 1, guard);
        if (p.rank == root) fill_block(data.data(), count, root, count);
        coll::bcast(data.data(), count, MPI_INT, root, p.comm);
        check_block(data.data(), count, root, count);
        CHECK_EQ(data[count], guard);
      }
    }
  });
}

void gather() {
  everywhere([](const Place& p) {
    for (int count : block_counts) {
      for (int root : coll::roots(p.size, count)) {
        for (bool in_place : {false, true}) {
          bool at_root = p.rank == root;
          std::vector<int> in(at_root ? count * p.size + 1 : 0, guard), out(count + 1);
          fill_block(out.data(), count, p.rank, root);
          if (at_root && in_place) fill_block(in.data() + count * root, count, root, root);
          coll::gather(at_root && in_place ? MPI_IN_PLACE : out.data(), count, MPI_INT,
                       at_root ? in.data() : nullptr, count, MPI_INT, root, p.comm);
          if (!at_root) continue;
          for (int r = 0; r < p.size; ++r) check_block(in.data() + count * r, count, r, root);
          CHECK_EQ(in[count * p.size], guard);
        }
      }
    }
  });
}

void scatter() {
  everywhere([](const Place& p) {
    for (int count : block_counts) {
      for (int root : coll::roots(p.size, count)) {
        for (bool in_place : {false, true}) {
          bool at_root = p.rank == root;
          std::vector<int> out(at_root ? count * p.size + 1 : 0), in(count + 1, guard);
          for (int r = 0; at_root && r < p.size; ++r)
            fill_block(out.data() + count * r, count, r, root);
          coll::scatter(at_root ? out.data() : nullptr, count, MPI_INT,
                        at_root && in_place ? MPI_IN_PLACE : in.data(), count, MPI_INT, root,
                        p.comm);
          if (!at_root || !in_place) check_block(in.data(), count, p.rank, root);
          CHECK_EQ(in[count], guard);
          for (int r = 0; at_root && r < p.size; ++r)
            check_block(out.data() + count * r, count, r, root);
        }
      }
    }
  });
}

void allgather() {
  everywhere([](const Place& p) {
    for (int count : block_counts) {
      for (bool in_place : {false, true}) {
        std::vector<int> in(count * p.size + 1, guard), out(count + 1);
        fill_block(out.data(), count, p.rank, 1);
        if (in_place) fill_block(in.data() + count * p.rank, count, p.rank, 1);
        coll::allgather(in_place ? MPI_IN_PLACE : out.data(), count, MPI_INT, in.data(), count,
                        MPI_INT, p.comm);
        for (int r = 0; r < p.size; ++r) check_block(in.data() + count * r, count, r, 1);
        CHECK_EQ(in[count * p.size], guard);
      }
    }
  });
}

void alltoall() {
  everywhere([](const Place& p) {
    for (int count : block_counts) {
      for (bool in_place : {false, true}) {
        std::vector<int> in(count * p.size + 1, guard), out(count * p.size + 1);
        for (int r = 0; r < p.size; ++r) {
          int* to = (in_place ? in : out).data() + count * r;
          fill_block(to, count, p.rank, 1000 + r);
        }
        coll::alltoall(in_place ? MPI_IN_PLACE : out.data(), count, MPI_INT, in.data(), count,
                       MPI_INT, p.comm);
        for (int r = 0; r < p.size; ++r)
          check_block(in.data() + count * r, count, r, 1000 + p.rank);
        CHECK_EQ(in[count * p.size], guard);
      }
    }
  });
}

// Root and others describe the same data by different types; the gaps stay as they were.
void bcast_derived() {
  everywhere([](const Place& p) {
    MPI_Datatype vector = MPI_DATATYPE_NULL;
    const int blocks = 700;
    MPI(MPI_Type_vector(blocks, 2, 5, MPI_INT, &vector));
    MPI(MPI_Type_commit(&vector));
    for (int root = 0; root < p.size; ++root) {
      std::vector<int> data(blocks * 5, guard);
      bool spread = p.rank % 2 == 0;
      for (int i = 0; p.rank == root && i < 2 * blocks; ++i)
        data[spread ? i / 2 * 5 + i % 2 : i] = value(root, i, 3);
      if (spread) {
        coll::bcast(data.data(), 1, vector, root, p.comm);
      } else {
        coll::bcast(data.data(), 2 * blocks, MPI_INT, root, p.comm);
      }
      for (int i = 0; i < 2 * blocks; ++i)
        CHECK_EQ(data[spread ? i / 2 * 5 + i % 2 : i], value(root, i, 3));
      for (int i = 0; spread && i < blocks - 1; ++i) {
        for (int k = 2; k < 5; ++k) CHECK_EQ(data[i * 5 + k], guard);
      }
    }
    MPI(MPI_Type_free(&vector));
  });
}

// Each rank's block becomes a column of a matrix: a resized vector as receive type.
void columns() {
  everywhere([](const Place& p) {
    const int rows = 300;
    MPI_Datatype column = MPI_DATATYPE_NULL, step = MPI_DATATYPE_NULL;
    MPI(MPI_Type_vector(rows, 1, p.size, MPI_INT, &column));
    MPI(MPI_Type_create_resized(column, 0, sizeof(int), &step));
    MPI(MPI_Type_commit(&step));
    std::vector<int> mine(rows), matrix(rows * p.size), back(rows * p.size);
    fill_block(mine.data(), rows, p.rank, 4);
    auto verify = [&] {
      for (int i = 0; i < rows; ++i) {
        for (int r = 0; r < p.size; ++r) CHECK_EQ(matrix[i * p.size + r], value(r, i, 4));
      }
    };
    coll::allgather(mine.data(), rows, MPI_INT, matrix.data(), 1, step, p.comm);
    verify();
    coll::gather(mine.data(), rows, MPI_INT, back.data(), 1, step, 0, p.comm);
    if (p.rank == 0) CHECK(back == matrix);
    std::fill(mine.begin(), mine.end(), 0);
    coll::scatter(matrix.data(), 1, step, mine.data(), rows, MPI_INT, p.size - 1, p.comm);
    check_block(mine.data(), rows, p.rank, 4);
    // A transpose: columns out, rows in.
    std::vector<int> rows_in(rows * p.size);
    coll::alltoall(matrix.data(), 1, step, rows_in.data(), rows, MPI_INT, p.comm);
    for (int r = 0; r < p.size; ++r) check_block(rows_in.data() + r * rows, rows, p.rank, 4);
    MPI(MPI_Type_free(&column));
    MPI(MPI_Type_free(&step));
  });
}

// Each block is one run, with a gap before the next one, upwards and downwards: the gaps stay as
// they are.
void blocks_apart() {
  everywhere([](const Place& p) {
    const int run = 3;
    for (const int step : {5, 3, -5}) {
      MPI_Datatype ints = MPI_DATATYPE_NULL, block = MPI_DATATYPE_NULL;
      MPI(MPI_Type_contiguous(run, MPI_INT, &ints));
      MPI(MPI_Type_create_resized(ints, 0, step * int(sizeof(int)), &block));
      MPI(MPI_Type_commit(&block));
      const int room = 5 * p.size, first = step < 0 ? room - 5 : 0;
      std::vector<int> mine(run), in(room, guard), out(room, guard);
      fill_block(mine.data(), run, p.rank, step);
      const auto verify = [&](auto&& of_rank) {
        for (int r = 0; r < p.size; ++r) {
          for (int i = 0; i < run; ++i) CHECK_EQ(in[first + r * step + i], of_rank(r, i));
        }
        const auto gaps = size_t(std::count(in.begin(), in.end(), guard));
        CHECK_EQ(gaps, size_t(room - run * p.size));
        std::fill(in.begin(), in.end(), guard);
      };
      const auto theirs = [&](int r, int i) { return value(r, i, step); };
      coll::allgather(mine.data(), run, MPI_INT, &in[first], 1, block, p.comm);
      verify(theirs);
      for (int root = 0; root < p.size; ++root) {
        coll::gather(mine.data(), run, MPI_INT, &in[first], 1, block, root, p.comm);
        if (p.rank == root) verify(theirs);
        for (int r = 0; r < p.size; ++r) fill_block(&out[first + r * step], run, r, root);
        std::vector<int> got(run + 1, guard);
        coll::scatter(&out[first], 1, block, got.data(), run, MPI_INT, root, p.comm);
        check_block(got.data(), run, p.rank, root);
        CHECK_EQ(got[run], guard);
      }
      for (int r = 0; r < p.size; ++r) fill_block(&out[first + r * step], run, r, p.rank);
      coll::alltoall(&out[first], 1, block, &in[first], 1, block, p.comm);
      verify([&](int r, int i) { return value(p.rank, i, r); });
      MPI(MPI_Type_free(&ints));
      MPI(MPI_Type_free(&block));
    }
  });
}

// Many small collectives in a row, so that fast ranks run ahead of slow ones.
void in_a_row() {
  everywhere([](const Place& p) {
    for (int round = 0; round < 200; ++round) {
      int root = round % p.size, data = p.rank == root ? round : -1;
      coll::bcast(&data, 1, MPI_INT, root, p.comm);
      CHECK_EQ(data, round);
      std::vector<int> all(p.size, -1);
      int mine = round * 100 + p.rank;
      coll::gather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, root, p.comm);
      for (int r = 0; p.rank == root && r < p.size; ++r) CHECK_EQ(all[r], round * 100 + r);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"barrier", barrier},
                      {"bcast", bcast},
                      {"gather", gather},
                      {"scatter", scatter},
                      {"allgather", allgather},
                      {"alltoall", alltoall},
                      {"bcast_derived", bcast_derived},
                      {"columns", columns},
                      {"blocks_apart", blocks_apart},
                      {"in_a_row", in_a_row}});
}
