/* complete_in_c: completes requests of Fortran's, in each way there is. */
#include <mpi.h>
#include <stdio.h>

void complete_in_c(int way, int count, int* numbers);
int resident_in_c(void);

static void one_by_one(int way, int count, MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    int flag = 0;
    if (way == 0) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    while (way == 1 && !flag) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
  }
}

static void together(int way, int count, MPI_Request* requests) {
  int flag = 0;
  if (way == 2) MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  while (way == 3 && !flag) MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
}

static void some(int way, int count, MPI_Request* requests) {
  int indices[2], at, done = 0;
  for (int left = count; left > 0; left -= done) {
    done = 1;
    if (way == 4)
      MPI_Waitany(count, requests, &at, MPI_STATUS_IGNORE);
    else
      MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
  }
}

void complete_in_c(int way, int count, int* numbers) {
  MPI_Request requests[2];
  for (int i = 0; i < count; ++i) requests[i] = MPI_Request_fromint(numbers[i]);
  if (way < 2)
    one_by_one(way, count, requests);
  else if (way < 4)
    together(way, count, requests);
  else
    some(way, count, requests);
  for (int i = 0; i < count; ++i) numbers[i] = MPI_Request_toint(requests[i]);
}

/* Kilobytes of this process in memory. */
int resident_in_c(void) {
  long all = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (fscanf(file, "%ld %ld", &all, &resident) != 2) resident = 0;
  fclose(file);
  return (int)(resident * 4);
}
