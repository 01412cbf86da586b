// Inter-communicators, making them and merging their sides: MPI 5.0, sections 7.6.2 and 7.6.3.
#include "api/detail/comms.h"
#include "api/detail/results.h"
#include "api/detail/sessions.h"
#include "communicators/inter.h"

using namespace headway;
using namespace headway::api;

namespace {

using communicators::Meeting;

// What is wrong with a call, before anybody else is told of it.
struct Wrong {
  int code = MPI_SUCCESS;
  const char* why = nullptr;
  const char* remedy = nullptr;
};

constexpr char leaders_group[] =
    "the leader of the other group has to be a process that is not in this one";

int check_leader(const Story& story, int leader, int size) {
  if (leader >= 0 && leader < size) return MPI_SUCCESS;
  base::Text<120> why;
  why << "the local leader " << leader << " is not a rank of the local group, which has " << size
      << (size == 1 ? " rank" : " ranks");
  return raise(story, MPI_ERR_RANK, why.c_str(),
               "pass the same rank of the local group on all its ranks");
}

// What the leaders have found. `own`: what this one says of its own arguments.
int raise_meeting(const Story& story, Meeting meeting, const Wrong& own) {
  switch (meeting) {
    case Meeting::made: break;
    case Meeting::refused:
      if (own.code != MPI_SUCCESS) return raise(story, own.code, own.why, own.remedy);
      return raise(story, MPI_ERR_RANK,
                   "the local leader has passed wrong arguments, of which it tells itself",
                   "see what the local leader says");
    case Meeting::shared:
      return raise(story, MPI_ERR_COMM, "a process is in both groups",
                   "make the two groups of different processes, as with MPI_Comm_split",
                   "the groups were made of overlapping lists, or both leaders are of one group");
    case Meeting::differ:
      return raise(story, MPI_ERR_GROUP,
                   "the remote group of one side is not the local group of the other",
                   "pass on each side, as the remote group, what is the local group on the other, "
                   "with its ranks in the same order");
  }
  return MPI_SUCCESS;
}

// Of a group, or of a communicator that an inter-communicator is to be made of.
bool has(const objects::Group& group, uint32_t process) { return group.find(process) >= 0; }

// What means something at the local leader alone.
Wrong look_at_peer(const objects::Comm& local, MPI_Comm peer_comm, int remote_leader, int tag,
                   communicators::OtherLeader& other) {
  objects::Comm* peer = registry().find_comm(value_of(peer_comm));
  if (!peer) {
    return {MPI_ERR_COMM, "the peer communicator is not valid: null, freed, or never made",
            "pass a communicator in which both leaders are; at the local leader it is looked at"};
  }
  if (remote_leader < 0 || remote_leader >= peer->others.size) {
    return {MPI_ERR_RANK, "the remote leader is not a rank of the peer communicator",
            "pass the rank that the other group's leader has in the peer communicator"};
  }
  if (tag < 0) return {MPI_ERR_TAG, "the tag is negative", nullptr};
  if (has(*local.group, peer->others.process(remote_leader))) {
    return {MPI_ERR_RANK, "the remote leader is in the local group", leaders_group};
  }
  other = {peer, remote_leader, tag};
  return {};
}

int intercomm_create(const char* call, MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm,
                     int remote_leader, int tag, MPI_Comm* newintercomm) {
  Story story{.call = call};
  if (const int code = take_intra(story, local_comm)) return code;
  if (const int code = check_leader(story, local_leader, story.comm->own.size)) return code;
  *newintercomm = MPI_COMM_NULL;
  communicators::OtherLeader other;
  Wrong wrong;
  if (story.comm->own.self == local_leader) {
    wrong = look_at_peer(*story.comm, peer_comm, remote_leader, tag, other);
  }
  objects::Comm* made = nullptr;
  Meeting meeting = Meeting::made;
  {
    const Inside inside(story.call);  // the leader waits for one who is not in it
    const Outcome outcome =
        communicators::create_inter(makers(), story.comm, local_leader, other, made, meeting);
    if (outcome != Outcome::ok) return raise(story, outcome);
  }
  if (!made) return raise_meeting(story, meeting, wrong);
  *newintercomm = handle_of<MPI_Comm>(made->handle);
  return MPI_SUCCESS;
}

Wrong look_at_remote_group(const objects::Group& local, MPI_Group handle, int remote_leader,
                           const objects::Group*& remote) {
  const objects::Group* group = registry().find_group(value_of(handle));
  if (!group) {
    return {MPI_ERR_GROUP, "the remote group is not valid: null, freed, or never made",
            "pass the other side's group; at the local leader it is looked at"};
  }
  if (remote_leader < 0 || remote_leader >= group->size) {
    return {MPI_ERR_RANK, "the remote leader is not a rank of the remote group",
            "pass the rank that the other side's leader has in its group"};
  }
  if (has(local, group->members[remote_leader])) {
    return {MPI_ERR_RANK, "the remote leader is in the local group", leaders_group};
  }
  for (int i = 0; i < group->size; ++i) {
    if (is_of_this_job(group->members[i])) continue;
    return {MPI_ERR_GROUP, "a process of the remote group is of another job",
            "use MPI_Intercomm_create, with a peer communicator in which both leaders are"};
  }
  remote = group;
  return {};
}

int intercomm_create_from_groups(const char* call, MPI_Group local_group, int local_leader,
                                 MPI_Group remote_group, int remote_leader, const char* stringtag,
                                 MPI_Info info, MPI_Errhandler errhandler, MPI_Comm* newintercomm) {
  FromGroup from{.story = {.call = call}};
  if (const int code =
          take_from_group(from, local_group, stringtag, info, errhandler, newintercomm)) {
    return code;
  }
  const Story& story = from.story;
  if (from.group->size == 0) return MPI_SUCCESS;
  if (const int code = check_leader(story, local_leader, from.group->size)) return code;
  const objects::Group* remote = nullptr;
  Wrong wrong;
  if (from.group->self == local_leader) {
    wrong = look_at_remote_group(*from.group, remote_group, remote_leader, remote);
  }
  objects::Comm* made = nullptr;
  Meeting meeting = Meeting::made;
  {
    const Inside inside(story.call);
    const Outcome outcome = communicators::create_inter_from_groups(
        makers(), from.group, local_leader, remote, remote_leader, stringtag, made, meeting);
    if (outcome != Outcome::ok) return raise(story, outcome);
  }
  if (!made) return raise_meeting(story, meeting, wrong);
  return hand_out_from_group(from, *made, newintercomm);
}

int intercomm_merge(const char* call, MPI_Comm intercomm, int high, MPI_Comm* newintracomm) {
  Story story{.call = call};
  if (const int code = take_comm(story, intercomm)) return code;
  if (!story.comm->is_inter()) {
    return raise(story, MPI_ERR_COMM, "the communicator has one group only: nothing to merge",
                 "pass an inter-communicator; MPI_Comm_test_inter tells which are");
  }
  *newintracomm = MPI_COMM_NULL;
  const Inside inside(story.call, unset, unset, story.comm);
  objects::Comm* made = nullptr;
  const Outcome outcome = communicators::merge(makers(), story.comm, high != 0, made);
  if (outcome != Outcome::ok) return raise(story, outcome);
  *newintracomm = handle_of<MPI_Comm>(made->handle);
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/comm_inter.inl"
