// Collectives with a count for each rank: Gatherv, Scatterv, Allgatherv, Alltoallv, Alltoallw;
// uneven and zero counts, gaps between the blocks, blocks in reverse order, in place, mixed
// datatypes.
#include "coll.h"

namespace {

using coll::everywhere;
using coll::guard;
using coll::Place;
using coll::value;

// How many elements belong to the pair (a, b); zero for some.
int count_for(int a, int b, int scale) {
  return (a * 7 + b * 3) % 4 == 0 ? 0 : (a + 2 * b) * scale + 1;
}

// Blocks from the last to the first with two elements free before each.
struct Blocks {
  std::vector<int> counts, places;
  int room = 0;
  template <class Count>
  Blocks(int size, Count count) : counts(size), places(size) {
    for (int r = size - 1; r >= 0; --r) {
      counts[r] = count(r);
      places[r] = room + 2;
      room += counts[r] + 2;
    }
    ++room;
  }
  std::vector<int> space() const { return std::vector<int>(room, guard); }
  void put(std::vector<int>& to, int block, int rank, int salt) const {
    for (int i = 0; i < counts[block]; ++i) to[places[block] + i] = value(rank, i, salt);
  }
  // Block r must hold what rank r contributed with salt(r); everything else is untouched.
  template <class Salt>
  void verify(const std::vector<int>& got, Salt salt, int line) const {
    std::vector<int> wanted = space();
    for (size_t r = 0; r < counts.size(); ++r)
      put(wanted, static_cast<int>(r), static_cast<int>(r), salt(static_cast<int>(r)));
    for (int i = 0; i < room; ++i) {
      if (got[i] != wanted[i])
        check::fail(__FILE__, line, "element %d of %d is %08x, expected %08x", i, room, got[i],
                    wanted[i]);
    }
  }
};

std::vector<int> contribution(int rank, int count, int salt) {
  std::vector<int> v(count + 1);
  for (int i = 0; i < count; ++i) v[i] = value(rank, i, salt);
  return v;
}

const std::vector<int> scales = {1, 50, 1500};

void gatherv() {
  everywhere([](const Place& p) {
    for (int scale : scales) {
      for (int root = 0; root < p.size; ++root) {
        for (bool in_place : {false, true}) {
          Blocks blocks(p.size, [&](int r) { return count_for(r, root, scale); });
          std::vector<int> in = blocks.space();
          int mine = blocks.counts[p.rank];
          std::vector<int> out = contribution(p.rank, mine, 5);
          bool at_root = p.rank == root;
          if (at_root && in_place) blocks.put(in, root, root, 5);
          coll::gatherv(at_root && in_place ? MPI_IN_PLACE : out.data(), mine, MPI_INT,
                        at_root ? in.data() : nullptr, at_root ? blocks.counts.data() : nullptr,
                        at_root ? blocks.places.data() : nullptr, MPI_INT, root, p.comm);
          if (at_root) blocks.verify(in, [](int) { return 5; }, __LINE__);
        }
      }
    }
  });
}

void scatterv() {
  everywhere([](const Place& p) {
    for (int scale : scales) {
      for (int root = 0; root < p.size; ++root) {
        for (bool in_place : {false, true}) {
          Blocks blocks(p.size, [&](int r) { return count_for(r, root, scale); });
          std::vector<int> out = blocks.space();
          for (int r = 0; r < p.size; ++r) blocks.put(out, r, r, 6);
          int mine = blocks.counts[p.rank];
          std::vector<int> in(mine + 1, guard);
          bool at_root = p.rank == root;
          coll::scatterv(at_root ? out.data() : nullptr, at_root ? blocks.counts.data() : nullptr,
                         at_root ? blocks.places.data() : nullptr, MPI_INT,
                         at_root && in_place ? MPI_IN_PLACE : in.data(), mine, MPI_INT, root,
                         p.comm);
          if (at_root && in_place) continue;
          for (int i = 0; i < mine; ++i) CHECK_EQ(in[i], value(p.rank, i, 6));
          CHECK_EQ(in[mine], guard);
        }
      }
    }
  });
}

void allgatherv() {
  everywhere([](const Place& p) {
    for (int scale : scales) {
      for (bool in_place : {false, true}) {
        Blocks blocks(p.size, [&](int r) { return count_for(r, 1, scale); });
        std::vector<int> in = blocks.space();
        std::vector<int> out = contribution(p.rank, blocks.counts[p.rank], 7);
        if (in_place) blocks.put(in, p.rank, p.rank, 7);
        coll::allgatherv(in_place ? MPI_IN_PLACE : out.data(), blocks.counts[p.rank], MPI_INT,
                         in.data(), blocks.counts.data(), blocks.places.data(), MPI_INT, p.comm);
        blocks.verify(in, [](int) { return 7; }, __LINE__);
      }
    }
  });
}

void alltoallv() {
  everywhere([](const Place& p) {
    for (int scale : scales) {
      for (bool in_place : {false, true}) {
        // In place needs the same count both ways.
        auto pair = [&](int from, int to) {
          return in_place ? count_for(std::min(from, to), std::max(from, to), scale)
                          : count_for(from, to, scale);
        };
        Blocks receive(p.size, [&](int r) { return pair(r, p.rank); });
        Blocks send(p.size, [&](int r) { return pair(p.rank, r); });
        std::vector<int> in = receive.space(), out = send.space();
        for (int r = 0; r < p.size; ++r) send.put(in_place ? in : out, r, p.rank, 100 + r);
        coll::alltoallv(in_place ? MPI_IN_PLACE : out.data(), send.counts.data(),
                        send.places.data(), MPI_INT, in.data(), receive.counts.data(),
                        receive.places.data(), MPI_INT, p.comm);
        receive.verify(in, [&](int) { return 100 + p.rank; }, __LINE__);
      }
    }
  });
}

// Displacements in bytes; a type for each rank: ints, pairs of ints, spread pairs.
void alltoallw() {
  everywhere([](const Place& p) {
    MPI_Datatype pair = MPI_DATATYPE_NULL, spread = MPI_DATATYPE_NULL;
    MPI(MPI_Type_contiguous(2, MPI_INT, &pair));
    MPI(MPI_Type_vector(2, 1, 2, MPI_INT, &spread));
    MPI(MPI_Type_commit(&pair));
    MPI(MPI_Type_commit(&spread));
    for (int scale : {1, 300}) {
      auto pairs = [&](int from, int to) { return count_for(from, to, scale); };
      std::vector<int> send_counts(p.size), send_places(p.size), counts(p.size), places(p.size);
      std::vector<MPI_Datatype> send_types(p.size), types(p.size);
      int room_out = 0, room_in = 0;
      for (int r = 0; r < p.size; ++r) {
        bool as_ints = (p.rank + r) % 2 == 0;
        send_types[r] = as_ints ? MPI_INT : pair;
        send_counts[r] = pairs(p.rank, r) * (as_ints ? 2 : 1);
        send_places[r] = room_out * 4;
        room_out += pairs(p.rank, r) * 2;
        types[r] = r % 2 ? spread : MPI_INT;
        counts[r] = pairs(r, p.rank) * (r % 2 ? 1 : 2);
        places[r] = room_in * 4;
        room_in += pairs(r, p.rank) * (r % 2 ? 3 : 2);
      }
      std::vector<int> out(room_out + 1), in(room_in + 1, guard), wanted(room_in + 1, guard);
      for (int r = 0; r < p.size; ++r) {
        for (int i = 0; i < 2 * pairs(p.rank, r); ++i)
          out[send_places[r] / 4 + i] = value(p.rank, i, r);
        for (int i = 0; i < 2 * pairs(r, p.rank); ++i) {
          int at = r % 2 ? i / 2 * 3 + i % 2 * 2 : i;  // extent of the spread pair: 3 ints
          wanted[places[r] / 4 + at] = value(r, i, p.rank);
        }
      }
      coll::alltoallw(out.data(), send_counts.data(), send_places.data(), send_types.data(),
                      in.data(), counts.data(), places.data(), types.data(), p.comm);
      for (int i = 0; i <= room_in; ++i) CHECK_EQ(in[i], wanted[i]);
      // In place: what goes to a rank lies where its data will come; counts agree both ways.
      std::vector<int> both(2 * p.size), own(p.size, 2);
      std::vector<MPI_Datatype> ints(p.size, MPI_INT);
      for (int r = 0; r < p.size; ++r) {
        places[r] = r * 8;
        both[2 * r] = value(p.rank, 0, r);
        both[2 * r + 1] = value(p.rank, 1, r);
      }
      coll::alltoallw(MPI_IN_PLACE, nullptr, nullptr, nullptr, both.data(), own.data(),
                      places.data(), ints.data(), p.comm);
      for (int r = 0; r < p.size; ++r) CHECK_EQ(both[2 * r + 1], value(r, 1, p.rank));
    }
    MPI(MPI_Type_free(&pair));
    MPI(MPI_Type_free(&spread));
  });
}

// Everything is zero: still a collective call, and no buffer is touched.
void nothing() {
  everywhere([](const Place& p) {
    std::vector<int> zeros(p.size, 0);
    coll::allgatherv(nullptr, 0, MPI_INT, nullptr, zeros.data(), zeros.data(), MPI_INT, p.comm);
    coll::alltoallv(nullptr, zeros.data(), zeros.data(), MPI_INT, nullptr, zeros.data(),
                    zeros.data(), MPI_INT, p.comm);
    coll::gatherv(nullptr, 0, MPI_INT, nullptr, zeros.data(), zeros.data(), MPI_INT, 0, p.comm);
    coll::scatterv(nullptr, zeros.data(), zeros.data(), MPI_INT, nullptr, 0, MPI_INT, 0, p.comm);
    coll::bcast(nullptr, 0, MPI_INT, 0, p.comm);
    coll::allreduce(nullptr, nullptr, 0, MPI_INT, MPI_SUM, p.comm);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"gatherv", gatherv},
                      {"scatterv", scatterv},
                      {"allgatherv", allgatherv},
                      {"alltoallv", alltoallv},
                      {"alltoallw", alltoallw},
                      {"nothing", nothing}});
}
