// All ranks write a file again and again, and rank 1 is killed in the midst of it (job_ends.py):
// what no view holds must be as it was, and the rest what was there or what was written.
//   file_killed FILE true|false MILLISECONDS BLOCK TILES
// FILE has TILES tiles of a block for each rank and one that nobody writes. The hint says whether
// in two phases.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 6) MPI_Abort(MPI_COMM_WORLD, 2);
  const int block = atoi(argv[4]), tiles = atoi(argv[5]);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "collective_buffering", argv[2]);
  MPI_Info_set(info, "cb_buffer_size", "65536");
  MPI_File file;
  if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR, info, &file) != MPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Info_free(&info);
  MPI_Datatype type;
  MPI_Type_vector(tiles, block, block * (size + 1), MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_File_set_view(file, MPI_Offset(block) * rank, MPI_BYTE, type, "native", MPI_INFO_NULL);
  std::vector<char> data(size_t(block) * size_t(tiles), char('a' + rank));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    const useconds_t after = useconds_t(atoi(argv[3])) * 1000;
    std::thread([after] {
      usleep(after);
      kill(getpid(), SIGKILL);
    }).detach();
  }
  for (;;) {
    if (MPI_File_write_at_all(file, 0, data.data(), int(data.size()), MPI_BYTE,
                              MPI_STATUS_IGNORE) != MPI_SUCCESS) {
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
}
