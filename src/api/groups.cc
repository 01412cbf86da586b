// Groups: MPI 5.0, section 7.3. Every handle given is one of its own, so that each MPI_Group_free
// takes away exactly one. Empty results are MPI_GROUP_EMPTY.
#include "api/detail/groups.h"
#include "api/detail/results.h"
#include "base/vec.h"

namespace headway::api {

using objects::Group;

int take_group(const Story& story, MPI_Group handle, Group*& group) {
  if (!is_running()) return not_running(story.call);
  group = registry().find_group(value_of(handle));
  if (group) return MPI_SUCCESS;
  return raise(story, MPI_ERR_GROUP,
               value_of(handle) == value_of(MPI_GROUP_NULL)
                   ? "the group is MPI_GROUP_NULL"
                   : "the group is not valid: it was freed, or never made",
               "check the handle that is passed");
}

int hand_out_group(const Story& story, Group* group, MPI_Group* handle) {
  return hand_out(story, registry().groups, group, handle);
}

}  // namespace headway::api

using namespace headway;
using namespace headway::api;

namespace {

using objects::Group;
using objects::GroupIndex;
using objects::Likeness;
static_assert(objects::undefined_rank == MPI_UNDEFINED);

int take_two(const Story& story, MPI_Group handle1, MPI_Group handle2, Group*& first,
             Group*& second) {
  if (const int code = take_group(story, handle1, first)) return code;
  return take_group(story, handle2, second);
}

// A group of those processes, from the session that `parent` comes from.
int make_group(const Story& story, const base::Vec<uint32_t>& members, const Group& parent,
               MPI_Group* handle) {
  if (members.empty()) {
    *handle = MPI_GROUP_EMPTY;
    return MPI_SUCCESS;
  }
  Group* group = Group::make(int(members.size()));
  if (!group) return raise(story, Outcome::no_memory);
  for (size_t i = 0; i < members.size(); ++i) group->members[i] = members[i];
  group->find_self(uint32_t(process().rank()));
  group->belong(parent.session);
  return hand_out_group(story, group, handle);
}

// Ranks of a group that a call lists, each at most once.
class Listed {
 public:
  Listed(const Story& story, const Group& group) : story_(story), group_(group) {}
  int prepare() {
    return seen_.resize(size_t(group_.size)) && order_.reserve(size_t(group_.size))
               ? MPI_SUCCESS
               : raise(story_, Outcome::no_memory);
  }
  int add(int64_t rank) {
    base::Text<200> why;
    if (rank < 0 || rank >= group_.size) {
      why << "rank " << rank << " is named, but the group has " << group_.size << " ranks";
      return raise(story_, MPI_ERR_RANK, why.c_str(),
                   "ranks go from 0 to one less than the group's size");
    }
    if (seen_[size_t(rank)]) {
      why << "rank " << rank << " is named twice";
      return raise(story_, MPI_ERR_RANK, why.c_str(), "name every rank at most once");
    }
    seen_[size_t(rank)] = 1;
    return order_.push(int(rank)) ? MPI_SUCCESS : raise(story_, Outcome::no_memory);
  }
  // Those listed, in the order of the list.
  int make_of_listed(MPI_Group* handle) {
    base::Vec<uint32_t> members;
    if (!members.reserve(order_.size())) return raise(story_, Outcome::no_memory);
    for (const int rank : order_) {
      if (!members.push(group_.members[rank])) return raise(story_, Outcome::no_memory);
    }
    return make_group(story_, members, group_, handle);
  }
  // All others, in the order of the group.
  int make_of_others(MPI_Group* handle) {
    base::Vec<uint32_t> members;
    for (int i = 0; i < group_.size; ++i) {
      if (seen_[size_t(i)]) continue;
      if (!members.push(group_.members[i])) return raise(story_, Outcome::no_memory);
    }
    return make_group(story_, members, group_, handle);
  }

 private:
  const Story& story_;
  const Group& group_;
  base::Vec<uint8_t> seen_;
  base::Vec<int> order_;
};

int from_list(const char* call, MPI_Group handle, int n, const int* ranks, bool keeps,
              MPI_Group* newgroup) {
  const Story story{.call = call};
  Group* group = nullptr;
  if (const int code = take_group(story, handle, group)) return code;
  if (n < 0) return raise(story, MPI_ERR_ARG, "the number of ranks is negative");
  Listed listed(story, *group);
  if (const int code = listed.prepare()) return code;
  for (int i = 0; i < n; ++i) {
    if (const int code = listed.add(ranks[i])) return code;
  }
  return keeps ? listed.make_of_listed(newgroup) : listed.make_of_others(newgroup);
}

int from_ranges(const char* call, MPI_Group handle, int n, int (*ranges)[3], bool keeps,
                MPI_Group* newgroup) {
  const Story story{.call = call};
  Group* group = nullptr;
  if (const int code = take_group(story, handle, group)) return code;
  if (n < 0) return raise(story, MPI_ERR_ARG, "the number of ranges is negative");
  Listed listed(story, *group);
  if (const int code = listed.prepare()) return code;
  for (int i = 0; i < n; ++i) {
    const int64_t first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
    if (stride == 0) return raise(story, MPI_ERR_ARG, "a range has stride 0");
    if (stride > 0 ? last < first : last > first) {
      return raise(story, MPI_ERR_ARG, "a range's stride leads away from its last rank",
                   "a range is first, last, stride; a stride below 0 counts down");
    }
    for (int64_t rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
      if (const int code = listed.add(rank)) return code;
    }
  }
  return keeps ? listed.make_of_listed(newgroup) : listed.make_of_others(newgroup);
}

enum class Sets : uint8_t { union_of, intersection, difference };

int combine(const char* call, MPI_Group handle1, MPI_Group handle2, Sets sets,
            MPI_Group* newgroup) {
  const Story story{.call = call};
  Group* first = nullptr;
  Group* second = nullptr;
  if (const int code = take_two(story, handle1, handle2, first, second)) return code;
  GroupIndex index;  // of the group in which members are looked for
  const Outcome built = index.build(sets == Sets::union_of ? *first : *second);
  if (built != Outcome::ok) return raise(story, built);
  base::Vec<uint32_t> members;
  const auto add_if = [&](const Group& from, bool all, bool found) {
    for (int i = 0; i < from.size; ++i) {
      if (!all && index.has(from.members[i]) != found) continue;
      if (!members.push(from.members[i])) return false;
    }
    return true;
  };
  bool done = add_if(*first, sets == Sets::union_of, sets == Sets::intersection);
  if (sets == Sets::union_of) done = done && add_if(*second, false, false);
  return done ? make_group(story, members, *first, newgroup) : raise(story, Outcome::no_memory);
}

// MPI_PROC_NULL stays what it is. False: not a rank of the group.
bool is_rank(const Group& group, int rank) {
  return rank == MPI_PROC_NULL || (rank >= 0 && rank < group.size);
}

int comm_group(const char* call, MPI_Comm comm, MPI_Group* group) {
  Story story{.call = call};
  if (const int code = take_comm(story, comm)) return code;
  story.comm->group->retain();
  return hand_out_group(story, story.comm->group, group);
}

int group_free(const char* call, MPI_Group* group) {
  const Story story{.call = call};
  Group* found = nullptr;
  if (const int code = take_group(story, *group, found)) return code;
  // Calls give MPI_GROUP_EMPTY as a result, so freeing it must be harmless.
  if (found != registry().empty_group) {
    registry().groups.remove(value_of(*group));
    found->release();
  }
  *group = MPI_GROUP_NULL;
  return MPI_SUCCESS;
}

int group_size(const char* call, MPI_Group group, int* size) {
  const Story story{.call = call};
  Group* found = nullptr;
  if (const int code = take_group(story, group, found)) return code;
  *size = found->size;
  return MPI_SUCCESS;
}

int group_rank(const char* call, MPI_Group group, int* rank) {
  const Story story{.call = call};
  Group* found = nullptr;
  if (const int code = take_group(story, group, found)) return code;
  *rank = found->self;
  return MPI_SUCCESS;
}

int group_translate_ranks(const char* call, MPI_Group group1, int n, const int ranks1[],
                          MPI_Group group2, int ranks2[]) {
  const Story story{.call = call};
  Group* from = nullptr;
  Group* to = nullptr;
  if (const int code = take_two(story, group1, group2, from, to)) return code;
  if (n < 0) return raise(story, MPI_ERR_ARG, "the number of ranks is negative");
  for (int i = 0; i < n; ++i) {
    if (is_rank(*from, ranks1[i])) continue;
    base::Text<120> why;
    why << "rank " << ranks1[i] << " is not in the first group, which has " << from->size
        << " ranks";
    return raise(story, MPI_ERR_RANK, why.c_str());
  }
  GroupIndex index;
  const bool many = n > 4;
  if (many) {
    if (const Outcome built = index.build(*to); built != Outcome::ok) return raise(story, built);
  }
  for (int i = 0; i < n; ++i) {
    if (ranks1[i] == MPI_PROC_NULL) {
      ranks2[i] = MPI_PROC_NULL;
      continue;
    }
    const uint32_t member = from->members[ranks1[i]];
    ranks2[i] = many ? index.find(member) : to->find(member);
  }
  return MPI_SUCCESS;
}

int group_compare(const char* call, MPI_Group group1, MPI_Group group2, int* result) {
  const Story story{.call = call};
  Group* first = nullptr;
  Group* second = nullptr;
  if (const int code = take_two(story, group1, group2, first, second)) return code;
  Likeness likeness;
  if (const Outcome compared = objects::compare(*first, *second, likeness);
      compared != Outcome::ok) {
    return raise(story, compared);
  }
  *result = likeness == Likeness::identical ? MPI_IDENT
            : likeness == Likeness::similar ? MPI_SIMILAR
                                            : MPI_UNEQUAL;
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/groups.inl"
