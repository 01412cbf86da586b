// Every collective on inter-communicators against a model: each root on either side, groups of
// 1+1, 1+3, 2+5 and halves, in each form; short and long, with gaps, reductions that do not commute
// and floating-point sums, which have the bits that the side's own reduction has.
#include <numeric>

#include "coll.h"
#include "inter.h"

namespace {

using coll::Form;
using inter::Sides;

// Across the limits between ways: 2 KB, 16 KB and 64 KB.
const std::vector<int> counts = {0, 1, 7, 600, 3000, 30011};

int value(int world_rank, size_t index, int salt) {
  return coll::value(world_rank, index, salt) & 0xffff;
}
std::vector<int> values(int world_rank, int count, int salt) {
  std::vector<int> v(count);
  for (int i = 0; i < count; ++i) v[i] = value(world_rank, i, salt);
  return v;
}

void in_every_form(const std::function<void(const Sides&, int count)>& body) {
  for (const Form form : {Form::blocking, Form::immediate, Form::persistent}) {
    inter::everywhere([&](const Sides& sides) {
      for (const int count : counts) {
        coll::form = form;
        body(sides, count);
      }
    });
  }
  coll::form = Form::blocking;
}

// Every rank of each side is the root in turn: what this one passes, or the root's rank beyond.
void each_root(const Sides& sides,
               const std::function<void(int root, int root_world, bool is_near)>& body) {
  for (int side = 0; side < 2; ++side) {
    const bool is_near = side == sides.side;
    for (int rank = 0; rank < sides.size(side); ++rank) {
      int passed = rank;
      if (is_near) passed = rank == sides.rank ? MPI_ROOT : MPI_PROC_NULL;
      body(passed, sides.ranks[side][rank], is_near);
    }
  }
}

// Ends with a guard that nobody may touch.
std::vector<int> room(size_t count) {
  std::vector<int> v(count + 1, -1);
  v.back() = coll::guard;
  return v;
}
void expect(const std::vector<int>& got, const std::vector<int>& wanted) {
  CHECK_EQ(got.size(), wanted.size() + 1);
  CHECK_EQ(got.back(), coll::guard);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (got[i] != wanted[i]) {
      check::fail(__FILE__, __LINE__, "element %zu of %zu is %d, expected %d", i, wanted.size(),
                  got[i], wanted[i]);
    }
  }
}

// Nobody leaves before all of the other side have come: they have told so by a message before.
void barrier() {
  for (const Form form : {Form::blocking, Form::immediate, Form::persistent}) {
    inter::everywhere([&](const Sides& sides) {
      for (int round = 0; round < 3; ++round) {
        coll::form = Form::blocking;
        std::vector<MPI_Request> sent(sides.others().size());
        for (size_t to = 0; to < sent.size(); ++to) {
          MPI(MPI_Issend(&round, 1, MPI_INT, static_cast<int>(to), round, sides.comm, &sent[to]));
        }
        std::vector<int> came(sides.others().size(), -1);
        std::vector<MPI_Request> coming(came.size());
        for (size_t from = 0; from < came.size(); ++from) {
          MPI(MPI_Irecv(&came[from], 1, MPI_INT, static_cast<int>(from), round, sides.comm,
                        &coming[from]));
        }
        coll::form = form;
        coll::barrier(sides.comm);
        MPI(MPI_Waitall(static_cast<int>(coming.size()), coming.data(), MPI_STATUSES_IGNORE));
        MPI(MPI_Waitall(static_cast<int>(sent.size()), sent.data(), MPI_STATUSES_IGNORE));
        for (const int one : came) CHECK_EQ(one, round);
      }
    });
  }
  coll::form = Form::blocking;
}

// The last of each side comes late; whoever is over on the other side knows of it.
void barrier_waits() {
  inter::everywhere([&](const Sides& sides) {
    for (const int late : {0, 1}) {
      const bool is_late = sides.side == late && sides.rank == sides.size(late) - 1;
      int there = 0;
      MPI_Request request = MPI_REQUEST_NULL;
      if (sides.side != late) {
        MPI(MPI_Irecv(&there, 1, MPI_INT, sides.size(late) - 1, 5, sides.comm, &request));
      }
      if (is_late) {
        usleep(20000);
        int here = 1;
        for (int to = 0; to < sides.size(1 - late); ++to) {
          MPI(MPI_Ssend(&here, 1, MPI_INT, to, 5, sides.comm));
        }
      }
      MPI(MPI_Barrier(sides.comm));
      int done = 1;
      MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      CHECK_EQ(done, 1);
    }
  });
}

void bcast() {
  in_every_form([](const Sides& sides, int count) {
    each_root(sides, [&](int root, int root_world, bool is_near) {
      const std::vector<int> wanted = values(root_world, count, 1);
      if (root == MPI_ROOT) {
        std::vector<int> data = wanted;
        coll::bcast(data.data(), count, MPI_INT, root, sides.comm);
        CHECK(data == wanted);
      } else if (is_near) {
        coll::bcast(nullptr, -1, MPI_DATATYPE_NULL, root, sides.comm);  // means nothing here
      } else {
        std::vector<int> data = room(count);
        coll::bcast(data.data(), count, MPI_INT, root, sides.comm);
        expect(data, wanted);
      }
    });
  });
}

// Every second int, on one side or on both.
void bcast_gaps() {
  MPI_Datatype pair = MPI_DATATYPE_NULL, sparse = MPI_DATATYPE_NULL;
  MPI(MPI_Type_contiguous(1, MPI_INT, &pair));
  MPI(MPI_Type_create_resized(pair, 0, 2 * sizeof(int), &sparse));
  MPI(MPI_Type_commit(&sparse));
  in_every_form([&](const Sides& sides, int count) {
    for (int kind = 0; kind < 2; ++kind) {
      each_root(sides, [&](int root, int root_world, bool is_near) {
        std::vector<int> data(2 * static_cast<size_t>(count), -7);
        const bool is_sparse = kind == 0 || !is_near;
        const int step = is_sparse ? 2 : 1;
        if (root == MPI_ROOT) {
          for (int i = 0; i < count; ++i) data[step * i] = value(root_world, i, 2);
        }
        coll::bcast(data.data(), count, is_sparse ? sparse : MPI_INT, root, sides.comm);
        if (is_near) return;
        for (int i = 0; i < count; ++i) {
          CHECK_EQ(data[2 * i], value(root_world, i, 2));
          CHECK_EQ(data[2 * i + 1], -7);
        }
      });
    }
  });
  MPI(MPI_Type_free(&pair));
  MPI(MPI_Type_free(&sparse));
}

// Blocks of all of a side, side by side.
std::vector<int> blocks(const std::vector<int>& ranks, int count, int salt) {
  std::vector<int> all;
  for (const int rank : ranks) {
    const std::vector<int> one = values(rank, count, salt);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void gather() {
  in_every_form([](const Sides& sides, int count) {
    each_root(sides, [&](int root, int, bool is_near) {
      if (root == MPI_ROOT) {
        std::vector<int> got = room(sides.others().size() * count);
        coll::gather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, got.data(), count, MPI_INT, root,
                     sides.comm);
        expect(got, blocks(sides.others(), count, 3));
      } else if (is_near) {
        coll::gather(nullptr, -1, MPI_DATATYPE_NULL, nullptr, -1, MPI_DATATYPE_NULL, root,
                     sides.comm);
      } else {
        const std::vector<int> mine = values(check::rank, count, 3);
        coll::gather(mine.data(), count, MPI_INT, nullptr, -1, MPI_DATATYPE_NULL, root, sides.comm);
      }
    });
  });
}

void scatter() {
  in_every_form([](const Sides& sides, int count) {
    each_root(sides, [&](int root, int root_world, bool is_near) {
      if (root == MPI_ROOT) {
        std::vector<int> all;
        for (const int rank : sides.others()) {
          const std::vector<int> one = values(root_world, count, 100 + rank);
          all.insert(all.end(), one.begin(), one.end());
        }
        coll::scatter(all.data(), count, MPI_INT, nullptr, -1, MPI_DATATYPE_NULL, root, sides.comm);
      } else if (is_near) {
        coll::scatter(nullptr, -1, MPI_DATATYPE_NULL, nullptr, -1, MPI_DATATYPE_NULL, root,
                      sides.comm);
      } else {
        std::vector<int> got = room(count);
        coll::scatter(nullptr, -1, MPI_DATATYPE_NULL, got.data(), count, MPI_INT, root, sides.comm);
        expect(got, values(root_world, count, 100 + check::rank));
      }
    });
  });
}

// Lengths and places that differ from rank to rank, with a hole before each block.
struct Uneven {
  std::vector<int> lengths, places;
  int total = 0;

  Uneven(const std::vector<int>& ranks, int count) {
    for (const int rank : ranks) {
      lengths.push_back(length_of(rank, count));
      places.push_back(total + 1);
      total += 1 + lengths.back();
    }
  }
  static int length_of(int rank, int count) { return count == 0 ? 0 : count / (1 + rank % 3); }
  std::vector<int> all(const std::function<int(size_t which, int index)>& at) const {
    std::vector<int> v(total, -1);
    for (size_t k = 0; k < lengths.size(); ++k) {
      for (int i = 0; i < lengths[k]; ++i) v[places[k] + i] = at(k, i);
    }
    return v;
  }
};

void gatherv() {
  in_every_form([](const Sides& sides, int count) {
    each_root(sides, [&](int root, int, bool is_near) {
      const Uneven there(is_near ? sides.others() : sides.own(), count);
      if (root == MPI_ROOT) {
        std::vector<int> got = room(there.total);
        coll::gatherv(nullptr, 0, MPI_INT, got.data(), there.lengths.data(), there.places.data(),
                      MPI_INT, root, sides.comm);
        expect(got, there.all([&](size_t k, int i) { return value(sides.others()[k], i, 4); }));
      } else if (is_near) {
        coll::gatherv(nullptr, -1, MPI_INT, nullptr, nullptr, nullptr, MPI_INT, root, sides.comm);
      } else {
        const int length = Uneven::length_of(check::rank, count);
        const std::vector<int> mine = values(check::rank, length, 4);
        coll::gatherv(mine.data(), length, MPI_INT, nullptr, nullptr, nullptr, MPI_INT, root,
                      sides.comm);
      }
    });
  });
}

void scatterv() {
  in_every_form([](const Sides& sides, int count) {
    each_root(sides, [&](int root, int root_world, bool is_near) {
      if (root == MPI_ROOT) {
        const Uneven there(sides.others(), count);
        const std::vector<int> all = there.all(
            [&](size_t k, int i) { return value(root_world, i, 200 + sides.others()[k]); });
        coll::scatterv(all.data(), there.lengths.data(), there.places.data(), MPI_INT, nullptr, 0,
                       MPI_INT, root, sides.comm);
      } else if (is_near) {
        coll::scatterv(nullptr, nullptr, nullptr, MPI_INT, nullptr, -1, MPI_INT, root, sides.comm);
      } else {
        const int length = Uneven::length_of(check::rank, count);
        std::vector<int> got = room(length);
        coll::scatterv(nullptr, nullptr, nullptr, MPI_INT, got.data(), length, MPI_INT, root,
                       sides.comm);
        expect(got, values(root_world, length, 200 + check::rank));
      }
    });
  });
}

// Each side sends another amount, one of them perhaps nothing.
void allgather() {
  in_every_form([](const Sides& sides, int count) {
    for (const int other : {count, count / 3, 0}) {
      const int sends = sides.side ? other : count, gets = sides.side ? count : other;
      const std::vector<int> mine = values(check::rank, sends, 5);
      std::vector<int> got = room(sides.others().size() * gets);
      coll::allgather(mine.data(), sends, MPI_INT, got.data(), gets, MPI_INT, sides.comm);
      expect(got, blocks(sides.others(), gets, 5));
    }
  });
}

void allgatherv() {
  in_every_form([](const Sides& sides, int count) {
    const Uneven there(sides.others(), count);
    const int length = Uneven::length_of(check::rank, count);
    const std::vector<int> mine = values(check::rank, length, 6);
    std::vector<int> got = room(there.total);
    coll::allgatherv(mine.data(), length, MPI_INT, got.data(), there.lengths.data(),
                     there.places.data(), MPI_INT, sides.comm);
    expect(got, there.all([&](size_t k, int i) { return value(sides.others()[k], i, 6); }));
  });
}

void alltoall() {
  in_every_form([](const Sides& sides, int count) {
    std::vector<int> out, wanted;
    for (const int rank : sides.others()) {
      const std::vector<int> to = values(check::rank, count, 300 + rank);
      const std::vector<int> from = values(rank, count, 300 + check::rank);
      out.insert(out.end(), to.begin(), to.end());
      wanted.insert(wanted.end(), from.begin(), from.end());
    }
    std::vector<int> got = room(wanted.size());
    coll::alltoall(out.data(), count, MPI_INT, got.data(), count, MPI_INT, sides.comm);
    expect(got, wanted);
  });
}

// By lengths, and by types as well.
void alltoallv_and_w() {
  in_every_form([](const Sides& sides, int count) {
    const auto length = [&](int from, int to) { return count / (1 + (from + 2 * to) % 4); };
    const int n = static_cast<int>(sides.others().size());
    std::vector<int> sends(n), sent_at(n), gets(n), got_at(n), bytes_out(n), bytes_in(n), wanted;
    std::vector<int> out;
    for (int k = 0; k < n; ++k) {
      const int other = sides.others()[k];
      sends[k] = length(check::rank, other);
      gets[k] = length(other, check::rank);
      sent_at[k] = static_cast<int>(out.size());
      got_at[k] = static_cast<int>(wanted.size());
      const std::vector<int> to = values(check::rank, sends[k], 400 + other);
      const std::vector<int> from = values(other, gets[k], 400 + check::rank);
      out.insert(out.end(), to.begin(), to.end());
      wanted.insert(wanted.end(), from.begin(), from.end());
      bytes_out[k] = sent_at[k] * static_cast<int>(sizeof(int));
      bytes_in[k] = got_at[k] * static_cast<int>(sizeof(int));
    }
    std::vector<int> got = room(wanted.size());
    coll::alltoallv(out.data(), sends.data(), sent_at.data(), MPI_INT, got.data(), gets.data(),
                    got_at.data(), MPI_INT, sides.comm);
    expect(got, wanted);
    // The type of an empty block means nothing.
    std::vector<MPI_Datatype> out_types(n), in_types(n);
    for (int k = 0; k < n; ++k) {
      out_types[k] = sends[k] ? MPI_INT : MPI_DATATYPE_NULL;
      in_types[k] = gets[k] ? MPI_INT : MPI_DATATYPE_NULL;
    }
    got = room(wanted.size());
    coll::alltoallw(out.data(), sends.data(), bytes_out.data(), out_types.data(), got.data(),
                    gets.data(), bytes_in.data(), in_types.data(), sides.comm);
    expect(got, wanted);
  });
}

std::vector<int> sums(const std::vector<int>& ranks, int count, int salt) {
  std::vector<int> all(count, 0);
  for (const int rank : ranks) {
    for (int i = 0; i < count; ++i) all[i] += value(rank, i, salt);
  }
  return all;
}

void reduce() {
  in_every_form([](const Sides& sides, int count) {
    each_root(sides, [&](int root, int, bool is_near) {
      if (root == MPI_ROOT) {
        std::vector<int> got = room(count);
        coll::reduce(nullptr, got.data(), count, MPI_INT, MPI_SUM, root, sides.comm);
        expect(got, sums(sides.others(), count, 7));
      } else if (is_near) {
        coll::reduce(nullptr, nullptr, -1, MPI_DATATYPE_NULL, MPI_OP_NULL, root, sides.comm);
      } else {
        const std::vector<int> mine = values(check::rank, count, 7);
        coll::reduce(mine.data(), nullptr, count, MPI_INT, MPI_SUM, root, sides.comm);
      }
    });
  });
}

void allreduce() {
  in_every_form([](const Sides& sides, int count) {
    const std::vector<int> mine = values(check::rank, count, 8);
    std::vector<int> got = room(count);
    coll::allreduce(mine.data(), got.data(), count, MPI_INT, MPI_SUM, sides.comm);
    expect(got, sums(sides.others(), count, 8));
  });
}

// `count` elements for all, dealt out in blocks that differ; and in equal ones.
void reduce_scatter() {
  in_every_form([](const Sides& sides, int count) {
    const int n = static_cast<int>(sides.own().size());
    std::vector<int> lengths(n, 0);
    for (int i = 0, left = count; left > 0; i = (i + 1) % n) {
      const int some = std::min(left, 1 + count / (n + 1 + i));
      if (i % 3 != 2 || n == 3) lengths[i] += some;
      if (i % 3 != 2 || n == 3) left -= some;
    }
    const int before = std::accumulate(lengths.begin(), lengths.begin() + sides.rank, 0);
    const std::vector<int> mine = values(check::rank, count, 9);
    std::vector<int> got = room(lengths[sides.rank]);
    coll::reduce_scatter(mine.data(), got.data(), lengths.data(), MPI_INT, MPI_SUM, sides.comm);
    std::vector<int> all = sums(sides.others(), count, 9);
    expect(got, {all.begin() + before, all.begin() + before + lengths[sides.rank]});
    const int both = static_cast<int>(sides.own().size() * sides.others().size());
    const int total = (count + both - 1) / both * both, each = total / n;
    const std::vector<int> more = values(check::rank, total, 10);
    got = room(each);
    coll::reduce_scatter_block(more.data(), got.data(), each, MPI_INT, MPI_SUM, sides.comm);
    all = sums(sides.others(), total, 10);
    expect(got, {all.begin() + sides.rank * each, all.begin() + (sides.rank + 1) * each});
  });
}

// x -> p x + q, whose composition does not commute.
struct Line {
  uint32_t p, q;
};
void compose(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* left = static_cast<const Line*>(in);
  auto* right = static_cast<Line*>(inout);
  for (int i = 0; i < *count; ++i) {
    right[i] = {left[i].p * right[i].p, left[i].q * right[i].p + right[i].q};
  }
}
std::vector<Line> lines(int world_rank, int count) {
  std::vector<Line> v(count);
  for (int i = 0; i < count; ++i) {
    v[i] = {static_cast<uint32_t>(value(world_rank, i, 11)),
            static_cast<uint32_t>(value(world_rank, i, 12))};
  }
  return v;
}

void in_rank_order() {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  MPI(MPI_Type_contiguous(2, MPI_UINT32_T, &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_Op_create(compose, 0, &op));
  in_every_form([&](const Sides& sides, int count) {
    const auto folded = [&](const std::vector<int>& ranks) {
      std::vector<Line> all = lines(ranks[0], count);
      for (size_t k = 1; k < ranks.size(); ++k) {
        std::vector<Line> next = lines(ranks[k], count);
        int n = count;
        compose(all.data(), next.data(), &n, nullptr);
        all = next;
      }
      return all;
    };
    const auto same = [&](const std::vector<Line>& got, const std::vector<Line>& wanted) {
      for (int i = 0; i < count; ++i) {
        CHECK_EQ(got[i].p, wanted[i].p);
        CHECK_EQ(got[i].q, wanted[i].q);
      }
    };
    const std::vector<Line> mine = lines(check::rank, count);
    std::vector<Line> got(count);
    coll::allreduce(mine.data(), got.data(), count, type, op, sides.comm);
    same(got, folded(sides.others()));
    each_root(sides, [&](int root, int, bool) {
      coll::reduce(mine.data(), got.data(), count, type, op, root, sides.comm);
      if (root == MPI_ROOT) same(got, folded(sides.others()));
    });
  });
  MPI(MPI_Type_free(&type));
  MPI(MPI_Op_free(&op));
}

// What the other side's own allreduce gives there, it gives here, bit by bit.
void same_bits() {
  in_every_form([](const Sides& sides, int count) {
    std::vector<double> mine(count), here(count), there(count), got(count);
    for (int i = 0; i < count; ++i) mine[i] = 1.0 / (1 + value(check::rank, i, 13));
    const coll::Form form = coll::form;
    coll::form = Form::blocking;
    coll::allreduce(mine.data(), here.data(), count, MPI_DOUBLE, MPI_SUM, sides.local);
    if (sides.rank == 0) {
      MPI(MPI_Sendrecv(here.data(), count, MPI_DOUBLE, 0, 3, there.data(), count, MPI_DOUBLE, 0, 3,
                       sides.comm, MPI_STATUS_IGNORE));
    }
    coll::bcast(there.data(), count, MPI_DOUBLE, 0, sides.local);
    coll::form = form;
    coll::allreduce(mine.data(), got.data(), count, MPI_DOUBLE, MPI_SUM, sides.comm);
    // memcmp() takes no null pointer, not even with nothing behind it.
    if (count > 0) CHECK_EQ(memcmp(got.data(), there.data(), got.size() * sizeof(double)), 0);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"barrier", barrier, 2},
                      {"barrier_waits", barrier_waits, 2},
                      {"bcast", bcast, 2},
                      {"bcast_gaps", bcast_gaps, 2},
                      {"gather", gather, 2},
                      {"gatherv", gatherv, 2},
                      {"scatter", scatter, 2},
                      {"scatterv", scatterv, 2},
                      {"allgather", allgather, 2},
                      {"allgatherv", allgatherv, 2},
                      {"alltoall", alltoall, 2},
                      {"alltoallv_and_w", alltoallv_and_w, 2},
                      {"reduce", reduce, 2},
                      {"allreduce", allreduce, 2},
                      {"reduce_scatter", reduce_scatter, 2},
                      {"in_rank_order", in_rank_order, 2},
                      {"same_bits", same_bits, 2}});
}
