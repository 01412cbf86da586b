// The C++ form of hello: rank 0 collects a line from every rank and prints them in order, with
// the name of the library that serves the program.
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  char host[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(host, &length);

  std::vector<char> hosts(static_cast<size_t>(size) * MPI_MAX_PROCESSOR_NAME);
  MPI_Gather(host, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, hosts.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR,
             0, MPI_COMM_WORLD);

  if (rank == 0) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    MPI_Get_library_version(library, &length);
    const std::string text(library);
    std::printf("%s\n", text.substr(0, text.find('\n')).c_str());
    for (int r = 0; r < size; ++r) {
      std::printf("rank %d of %d on %s\n", r, size,
                  &hosts[static_cast<size_t>(r) * MPI_MAX_PROCESSOR_NAME]);
    }
  }
  MPI_Finalize();
  return 0;
}
