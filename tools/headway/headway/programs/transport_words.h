// Which words of a rank's environment choose how its MPI moves messages: over what, up to which
// size it copies them, who does it. A recording's header has them (tools/record/header.c), and so
// has what was measured of an MPI (calibrate.c): one that was measured under other words is another
// MPI. Which network module an MPICH uses is told by itself (MPIR_CVAR_CH4_NETMOD). Any language
// that has C's strings.
#pragma once
#include <stdbool.h>
#include <string.h>

// Of more, or of longer ones, what comes first; its end is counted in the room.
enum { most_transport_words = 32, transport_word_room = 200 };

// The beginning of a word as NAME=VALUE.
static const char* const transport_words[] = {
    "UCX_TLS=", "UCX_NET_DEVICES=", "UCX_SHM_DEVICES=", "UCX_RNDV_", "UCX_ZCOPY_", "UCX_BCOPY_",
    "UCX_PROTO_", "UCX_TCP_", "UCX_CMA_",
    // libfabric
    "FI_PROVIDER=", "FI_OFI_", "FI_TCP_", "FI_SHM_", "FI_VERBS_", "FI_PSM", "FI_CXI_", "FI_EFA_",
    "PSM2_", "PSM3_",
    // Open MPI
    "OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl", "OMPI_MCA_smsc",
    // MPICH and Intel's
    "MPIR_CVAR_CH4_", "MPIR_CVAR_NOLOCAL=", "MPIR_CVAR_OFI_", "MPIR_CVAR_UCX_",
    "MPIR_CVAR_ASYNC_PROGRESS=", "I_MPI_FABRICS=", "I_MPI_OFI_", "I_MPI_SHM", "I_MPI_EAGER",
    "I_MPI_INTRANODE", "I_MPI_ASYNC_PROGRESS",
    // ours
    "HEADWAY_SHM=", "HEADWAY_ONE_COPY=", "HEADWAY_TCP_INTERFACE=", "HEADWAY_EAGER_MAX_",
    "HEADWAY_SEND_AHEAD=", "HEADWAY_SPARE=", "HEADWAY_PROGRESS=", "HEADWAY_PREFETCH=",
    "HEADWAY_EARLY_RELEASE="};

static inline bool is_transport_word(const char* word) {
  if (strncmp(word, "MPIR_CVAR_CH4_NETMOD=", 21) == 0) return false;
  for (size_t i = 0; i < sizeof transport_words / sizeof *transport_words; i++)
    if (strncmp(word, transport_words[i], strlen(transport_words[i])) == 0) return true;
  return false;
}
