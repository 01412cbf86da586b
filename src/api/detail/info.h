// Info objects as arguments of calls. Thread: any. Owns nothing. Invariant: MPI_INFO_ENV exists
// once somebody has asked for it, also before MPI_Init.
#pragma once
#include "api/detail/call.h"
#include "objects/info.h"

namespace headway::api {

// The one domain of hardware that is told apart: MPI_Get_hw_resource_info, MPI_Comm_split_type.
inline constexpr char shared_memory_domain[] = "mpi_shared_memory";

// The thread levels by name, as infos have them. False: there is no such name.
const char* level_name(int level);
bool find_level(const char* name, int& level);

// Makes MPI_INFO_ENV if it is not there yet. False without memory.
bool prepare_info_env();
// MPI_Init knows more: how many processes there are, and the thread level that was asked for.
void complete_info_env();

// Finds an info object, which may not be MPI_INFO_NULL; raises MPI_ERR_INFO.
int take_info(const Story& story, MPI_Info handle, objects::Info*& info);
// The communicator has the hints of `info` from now on, and the engine knows of those that it uses.
void use_hints(objects::Comm& comm, const objects::Info& info);
// A new handle for `info` (null: no memory), whose reference goes to the handle.
int hand_out_info(const Story& story, objects::Info* info, MPI_Info* handle);

}  // namespace headway::api
