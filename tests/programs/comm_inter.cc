// Inter-communicators made in every way: by leaders, from groups, by dup, idup, split and create;
// asked, used for messages, merged; split and merged at random against a model.
#include <string>

#include "inter.h"

namespace {

using inter::Sides;
using Ranks = std::vector<int>;  // in MPI_COMM_WORLD

Ranks world_ranks(MPI_Group group) {
  MPI_Group world = MPI_GROUP_NULL;
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  int size = 0;
  MPI(MPI_Group_size(group, &size));
  Ranks all(size), found(size);
  for (int i = 0; i < size; ++i) all[i] = i;
  MPI(MPI_Group_translate_ranks(group, size, all.data(), world, found.data()));
  MPI(MPI_Group_free(&world));
  return found;
}

int compare(MPI_Comm a, MPI_Comm b) {
  int result = -1;
  MPI(MPI_Comm_compare(a, b, &result));
  return result;
}

// It is what it should be, and messages and collectives come to whom they are for.
void expect_works(MPI_Comm comm, const Ranks& own, const Ranks& others) {
  int rank = -1, size = -1, remote = -1, flag = 0;
  MPI(MPI_Comm_test_inter(comm, &flag));
  CHECK(flag);
  MPI(MPI_Comm_rank(comm, &rank));
  MPI(MPI_Comm_size(comm, &size));
  MPI(MPI_Comm_remote_size(comm, &remote));
  CHECK_EQ(size, own.size());
  CHECK_EQ(remote, others.size());
  CHECK_EQ(own[rank], check::rank);
  MPI_Group groups[2] = {MPI_GROUP_NULL, MPI_GROUP_NULL};
  MPI(MPI_Comm_group(comm, &groups[0]));
  MPI(MPI_Comm_remote_group(comm, &groups[1]));
  CHECK(world_ranks(groups[0]) == own);
  CHECK(world_ranks(groups[1]) == others);
  for (MPI_Group& group : groups) MPI(MPI_Group_free(&group));
  // To everybody beyond, who takes half of them by name and the rest as they come.
  std::vector<MPI_Request> requests(remote);
  for (int to = 0; to < remote; ++to) {
    MPI(MPI_Isend(&check::rank, 1, MPI_INT, to, 10 + rank, comm, &requests[to]));
  }
  for (int i = 0; i < remote; ++i) {
    const bool by_name = i < remote / 2;
    int got = -1;
    MPI_Status status;
    MPI(MPI_Recv(&got, 1, MPI_INT, by_name ? i : MPI_ANY_SOURCE, by_name ? 10 + i : MPI_ANY_TAG,
                 comm, &status));
    CHECK(status.MPI_SOURCE >= 0 && status.MPI_SOURCE < remote);
    CHECK_EQ(status.MPI_TAG, 10 + status.MPI_SOURCE);
    CHECK_EQ(got, others[status.MPI_SOURCE]);
  }
  MPI(MPI_Waitall(remote, requests.data(), MPI_STATUSES_IGNORE));
  Ranks all(remote, -1);
  MPI(MPI_Allgather(&check::rank, 1, MPI_INT, all.data(), 1, MPI_INT, comm));
  CHECK(all == others);
  int one = 1, sum = 0;
  MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQ(sum, remote);
}

void expect_intra(MPI_Comm comm, const Ranks& wanted) {
  int rank = -1, size = 0, flag = 1;
  MPI(MPI_Comm_test_inter(comm, &flag));
  CHECK(!flag);
  MPI(MPI_Comm_rank(comm, &rank));
  MPI(MPI_Comm_size(comm, &size));
  CHECK_EQ(size, wanted.size());
  CHECK_EQ(wanted[rank], check::rank);
  Ranks all(size, -1);
  MPI(MPI_Allgather(&check::rank, 1, MPI_INT, all.data(), 1, MPI_INT, comm));
  CHECK(all == wanted);
}

Ranks joined(const Ranks& first, const Ranks& second) {
  Ranks all = first;
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

void made_by_leaders() {
  inter::everywhere([](const Sides& sides) {
    expect_works(sides.comm, sides.own(), sides.others());
    char name[MPI_MAX_OBJECT_NAME] = "x";
    int length = -1;
    MPI(MPI_Comm_get_name(sides.comm, name, &length));
    CHECK_EQ(length, 0);
    MPI(MPI_Comm_set_name(sides.comm, "the bridge"));
    MPI(MPI_Comm_get_name(sides.comm, name, &length));
    CHECK_EQ(std::string(name), std::string("the bridge"));
    CHECK_EQ(compare(sides.comm, sides.comm), MPI_IDENT);
    CHECK_EQ(compare(sides.comm, sides.local), MPI_UNEQUAL);
    CHECK_EQ(compare(sides.comm, MPI_COMM_WORLD), MPI_UNEQUAL);
  });
}

// Probes, both directions at once, nobody, buffered and persistent ones.
void messages() {
  inter::everywhere([](const Sides& sides) {
    const int remote = sides.size(1 - sides.side);
    if (sides.rank != 0) return;  // both first ranks
    int out = check::rank, in = -1, count = 0, flag = 0;
    MPI_Status status;
    MPI(MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, sides.comm, &status));
    CHECK_EQ(in, sides.others()[0]);
    MPI(MPI_Sendrecv_replace(&out, 1, MPI_INT, 0, 2, 0, 2, sides.comm, &status));
    CHECK_EQ(out, sides.others()[0]);
    MPI(MPI_Send(&out, 1, MPI_INT, MPI_PROC_NULL, 3, sides.comm));
    MPI(MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 3, sides.comm, &status));
    CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    std::vector<int> data(50000, check::rank), got(data.size(), -1);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI(MPI_Isend(data.data(), 50000, MPI_INT, 0, 4, sides.comm, &request));
    MPI(MPI_Probe(MPI_ANY_SOURCE, 4, sides.comm, &status));
    CHECK_EQ(status.MPI_SOURCE, 0);
    MPI(MPI_Get_count(&status, MPI_INT, &count));
    CHECK_EQ(count, 50000);
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI(MPI_Mprobe(0, 4, sides.comm, &message, &status));
    MPI(MPI_Mrecv(got.data(), 50000, MPI_INT, &message, &status));
    CHECK_EQ(got[49999], sides.others()[0]);
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI(MPI_Iprobe(remote - 1, 99, sides.comm, &flag, &status));
    CHECK(!flag);
    MPI_Request pair[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI(MPI_Send_init(&check::rank, 1, MPI_INT, 0, 5, sides.comm, &pair[0]));
    MPI(MPI_Recv_init(&in, 1, MPI_INT, MPI_ANY_SOURCE, 5, sides.comm, &pair[1]));
    for (int round = 0; round < 3; ++round) {
      in = -1;
      MPI(MPI_Startall(2, pair));
      MPI(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE));
      CHECK_EQ(in, sides.others()[0]);
    }
    for (MPI_Request& one : pair) MPI(MPI_Request_free(&one));
  });
}

int copied = 0;
int count_copy(MPI_Comm, int, void*, void* in, void* out, int* flag) {
  ++copied;
  *static_cast<void**>(out) = in;
  *flag = 1;
  return MPI_SUCCESS;
}
int raised = 0;
void count_error(MPI_Comm*, int*, ...) { ++raised; }

// What a new one has of the old one, and what it has not.
void inherited() {
  int keyval = MPI_KEYVAL_INVALID;
  MPI(MPI_Comm_create_keyval(count_copy, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr));
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI(MPI_Comm_create_errhandler(count_error, &handler));
  inter::everywhere([&](const Sides& sides) {
    int here = 5, flag = 0;
    void* found = nullptr;
    MPI_Comm again = MPI_COMM_NULL, merged = MPI_COMM_NULL, later = MPI_COMM_NULL;
    MPI(MPI_Comm_set_attr(sides.local, keyval, &here));
    MPI(MPI_Comm_set_errhandler(sides.local, handler));
    copied = 0;
    again = inter::join(sides);
    MPI(MPI_Comm_get_attr(again, keyval, &found, &flag));
    CHECK(!flag);
    CHECK_EQ(copied, 0);
    raised = 0;
    EXPECT_CLASS(MPI_ERR_RANK, MPI_Send(&here, 1, MPI_INT, sides.size(1 - sides.side), 0, again));
    CHECK_EQ(raised, 1);
    MPI(MPI_Comm_set_attr(again, keyval, &here));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI(MPI_Comm_idup(again, &later, &request));
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(copied, 1);
    MPI(MPI_Comm_get_attr(later, keyval, &found, &flag));
    CHECK(flag && found == &here);
    expect_works(later, sides.own(), sides.others());
    CHECK_EQ(compare(later, again), MPI_CONGRUENT);
    MPI(MPI_Intercomm_merge(again, sides.side, &merged));
    MPI(MPI_Comm_get_attr(merged, keyval, &found, &flag));
    CHECK(!flag);
    EXPECT_CLASS(MPI_ERR_RANK, MPI_Send(&here, 1, MPI_INT, check::size, 0, merged));
    CHECK_EQ(raised, 2);
    for (MPI_Comm* one : {&again, &later, &merged}) MPI(MPI_Comm_free(one));
  });
  MPI(MPI_Errhandler_free(&handler));
  MPI(MPI_Comm_free_keyval(&keyval));
}

// Several at once, whose messages do not meet; and hints.
void dup() {
  inter::everywhere([](const Sides& sides) {
    MPI_Comm comms[4];
    MPI_Request requests[3];
    MPI(MPI_Comm_dup(sides.comm, &comms[3]));
    for (int i = 0; i < 3; ++i) MPI(MPI_Comm_idup(sides.comm, &comms[i], &requests[i]));
    expect_works(sides.comm, sides.own(), sides.others());
    MPI(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    for (const MPI_Comm comm : comms) expect_works(comm, sides.own(), sides.others());
    MPI_Request got[4];
    int values[4] = {-1, -1, -1, -1};
    if (sides.rank == 0) {
      for (int i = 0; i < 4; ++i) {
        MPI(MPI_Irecv(&values[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &got[i]));
      }
      for (int i = 3; i >= 0; --i) MPI(MPI_Send(&i, 1, MPI_INT, 0, 1, comms[i]));
      MPI(MPI_Waitall(4, got, MPI_STATUSES_IGNORE));
      for (int i = 0; i < 4; ++i) CHECK_EQ(values[i], i);
    }
    for (MPI_Comm& comm : comms) MPI(MPI_Comm_free(&comm));
    MPI_Info info = MPI_INFO_NULL;
    MPI(MPI_Info_create(&info));
    MPI(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    MPI(MPI_Comm_dup_with_info(sides.comm, info, &comms[0]));
    MPI(MPI_Info_free(&info));
    MPI(MPI_Comm_get_info(comms[0], &info));
    char value[8] = "";
    int length = sizeof value, flag = 0;
    MPI(MPI_Info_get_string(info, "mpi_assert_no_any_tag", &length, value, &flag));
    CHECK(flag && std::string(value) == "true");
    MPI(MPI_Info_free(&info));
    MPI(MPI_Comm_free(&comms[0]));
  });
}

// Whoever says `high` comes behind; if both say the same there is one order all the same.
void merge() {
  inter::everywhere([](const Sides& sides) {
    for (int highs = 0; highs < 4; ++highs) {
      const int high[] = {highs & 1, highs >> 1};
      MPI_Comm merged = MPI_COMM_NULL;
      MPI(MPI_Intercomm_merge(sides.comm, high[sides.side] ? 7 : 0, &merged));
      int size = 0;
      MPI(MPI_Comm_size(merged, &size));
      Ranks all(size, -1);
      MPI(MPI_Allgather(&check::rank, 1, MPI_INT, all.data(), 1, MPI_INT, merged));
      const Ranks up = joined(sides.ranks[0], sides.ranks[1]);
      const Ranks down = joined(sides.ranks[1], sides.ranks[0]);
      if (high[0] == high[1]) CHECK(all == up || all == down);
      if (high[0] < high[1]) CHECK(all == up);
      if (high[0] > high[1]) CHECK(all == down);
      expect_intra(merged, all);
      MPI(MPI_Comm_free(&merged));
    }
  });
}

MPI_Group group_of(const Ranks& ranks) {
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  MPI(MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group));
  MPI(MPI_Group_free(&world));
  return group;
}

// Each side its ranks backwards, but for the last of a longer one; then none on one side.
void create() {
  inter::everywhere([](const Sides& sides) {
    Ranks chosen[2];
    for (int side = 0; side < 2; ++side) {
      chosen[side].assign(sides.ranks[side].rbegin(), sides.ranks[side].rend());
      if (chosen[side].size() > 2) chosen[side].erase(chosen[side].begin());
    }
    const Ranks &own = chosen[sides.side], &others = chosen[1 - sides.side];
    const bool is_in = std::find(own.begin(), own.end(), check::rank) != own.end();
    MPI_Group group = group_of(own);
    MPI_Comm made = MPI_COMM_WORLD;
    MPI(MPI_Comm_create(sides.comm, group, &made));
    CHECK_EQ(made != MPI_COMM_NULL, is_in);
    if (is_in) {
      expect_works(made, own, others);
      MPI(MPI_Comm_free(&made));
    }
    MPI(MPI_Comm_create(sides.comm, sides.side ? group : MPI_GROUP_EMPTY, &made));
    CHECK_EQ(made, MPI_COMM_NULL);
    MPI(MPI_Group_free(&group));
    expect_works(sides.comm, sides.own(), sides.others());
  });
}

void from_groups() {
  inter::everywhere([](const Sides& sides) {
    const std::string tag = "bridge " + std::to_string(sides.size(0) % 3);
    MPI_Group own = group_of(sides.own()), others = group_of(sides.others());
    const int leaders[] = {sides.size(0) - 1, 0};
    const bool leads = sides.rank == leaders[sides.side];
    MPI_Comm made = MPI_COMM_NULL;
    MPI(MPI_Intercomm_create_from_groups(own, leaders[sides.side], leads ? others : MPI_GROUP_NULL,
                                         leads ? leaders[1 - sides.side] : -9, tag.c_str(),
                                         MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
    expect_works(made, sides.own(), sides.others());
    EXPECT_CLASS(MPI_ERR_RANK, MPI_Send(nullptr, 0, MPI_INT, check::size, 0, made));
    MPI(MPI_Comm_free(&made));
    MPI(MPI_Group_free(&own));
    MPI(MPI_Group_free(&others));
  });
}

// Leaders may meet over an inter-communicator, too: the remote leader is a rank beyond.
void over_a_bridge() {
  inter::everywhere([](const Sides& sides) {
    MPI_Comm made = MPI_COMM_NULL;
    const bool leads = sides.rank == 0;
    MPI(MPI_Intercomm_create(sides.local, 0, leads ? sides.comm : MPI_COMM_NULL, 0, 3, &made));
    expect_works(made, sides.own(), sides.others());
    MPI(MPI_Comm_free(&made));
  });
}

// Colors and keys at random, against the model; and what came of it merged and split again.
void at_random() {
  check::Random random(check::seed);  // the same numbers on all ranks
  for (int round = 0; round < 12 * static_cast<int>(check::scale); ++round) {
    Ranks all(check::size), lists[2];
    for (int i = 0; i < check::size; ++i) all[i] = i;
    random.shuffle(all);
    const int first = random.between(1, check::size - 1);
    lists[0].assign(all.begin(), all.begin() + first);
    lists[1].assign(all.begin() + first, all.begin() + random.between(first + 1, check::size));
    Sides sides = inter::place(lists[0], lists[1]);
    const int leaders[] = {random.between(0, sides.size(0) - 1),
                           random.between(0, sides.size(1) - 1)};
    const uint64_t salt = random.next();
    sides.comm = inter::join(sides, leaders[0], leaders[1], round);
    const auto color_of = [&](int world_rank) {
      return static_cast<int>(check::key_of(salt, world_rank, 1) % 4) - 1;  // -1: in none
    };
    const auto key_of = [&](int world_rank) {
      return static_cast<int>(check::key_of(salt, world_rank, 2) % 3) - 1;
    };
    const auto of_color = [&](const Ranks& side, int color) {
      Ranks found;
      for (const int key : {-1, 0, 1}) {
        for (const int one : side) {
          if (color_of(one) == color && key_of(one) == key) found.push_back(one);
        }
      }
      return found;
    };
    if (sides.side >= 0) {
      const int color = color_of(check::rank);
      MPI_Comm part = MPI_COMM_WORLD, merged = MPI_COMM_NULL;
      MPI(MPI_Comm_split(sides.comm, color < 0 ? MPI_UNDEFINED : color, key_of(check::rank),
                         &part));
      const Ranks own = of_color(sides.own(), color), others = of_color(sides.others(), color);
      CHECK_EQ(part == MPI_COMM_NULL, color < 0 || others.empty());
      if (part != MPI_COMM_NULL) {
        expect_works(part, own, others);
        MPI(MPI_Intercomm_merge(part, sides.side == 0, &merged));
        expect_intra(merged, sides.side ? joined(own, others) : joined(others, own));
        MPI(MPI_Comm_free(&merged));
        MPI(MPI_Comm_free(&part));
      }
      MPI(MPI_Comm_split_type(sides.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part));
      if (part != MPI_COMM_NULL) MPI(MPI_Comm_free(&part));
      expect_works(sides.comm, sides.own(), sides.others());
    }
    inter::release(sides);
  }
}

// Freed while messages and collectives are under way; disconnected, which waits for them.
void ends() {
  inter::everywhere([](const Sides& sides) {
    for (const bool waits : {false, true}) {
      MPI_Comm comm = MPI_COMM_NULL;
      MPI(MPI_Comm_dup(sides.comm, &comm));
      const int remote = sides.size(1 - sides.side);
      std::vector<std::vector<int>> out(remote), in(remote);
      std::vector<MPI_Request> requests;
      for (int k = 0; k < remote; ++k) {
        out[k].assign(20000, check::rank);
        in[k].assign(20000, -1);
        requests.resize(requests.size() + 2);
        MPI(MPI_Irecv(in[k].data(), 20000, MPI_INT, k, 1, comm, &requests.end()[-2]));
        MPI(MPI_Isend(out[k].data(), 20000, MPI_INT, k, 1, comm, &requests.end()[-1]));
      }
      int one = 1, sum = 0;
      requests.push_back(MPI_REQUEST_NULL);
      MPI(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests.back()));
      MPI(waits ? MPI_Comm_disconnect(&comm) : MPI_Comm_free(&comm));
      CHECK_EQ(comm, MPI_COMM_NULL);
      if (waits) CHECK_EQ(sum, remote);
      MPI(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
      CHECK_EQ(sum, remote);
      for (int k = 0; k < remote; ++k) CHECK_EQ(in[k].back(), sides.others()[k]);
    }
  });
}

void hundreds() {
  if (check::size < 2) return;
  Sides sides = inter::place({0}, {1});
  for (int i = 0; i < 500 && sides.side >= 0; ++i) {
    MPI_Comm comm = i % 5 ? MPI_COMM_NULL : inter::join(sides, 0, 0, i);
    if (i % 5) MPI(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    if (i % 5 == 0) MPI(MPI_Barrier(comm));
    MPI(MPI_Comm_free(&comm));
  }
  inter::release(sides);
}

}  // namespace

int main(int argc, char** argv) {
  return check::main(argc, argv,
                     {{"made_by_leaders", made_by_leaders, 2},
                      {"messages", messages, 2},
                      {"inherited", inherited, 2},
                      {"dup", dup, 2},
                      {"merge", merge, 2},
                      {"create", create, 2},
                      {"from_groups", from_groups, 2},
                      {"over_a_bridge", over_a_bridge, 2},
                      {"at_random", at_random, 2},
                      {"ends", ends, 2},
                      {"hundreds", hundreds, 2}});
}
