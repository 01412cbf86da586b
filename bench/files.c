// Files beside any MPI: interleaved blocks by collective calls, and by pwrite and pread; shared
// pointers, opens, overlap of nonblocking writes. By hand, with each MPI's own mpicc and mpiexec:
//   mpicc -O2 bench/files.c -o files && mpiexec -n 2 ./files FOLDER [MEGABYTES [REPETITIONS]]
// FOLDER may be on tmpfs (/dev/shm) or on a disk; what is measured goes through the page cache. A
// line is: what, block in bytes, median, least and most, unit. The first write of a new file is
// told apart from the rewrites. All bytes that are read back are looked at.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks, repetitions = 7;
static char name[4096];

static void fail(const char* why) {
  fprintf(stderr, "files: rank %d: %s\n", rank, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void must(int code, const char* what) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "files: %s: %s\n", what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void print(const char* what, long block, double* values, int n, const char* unit) {
  if (rank) return;
  qsort(values, (size_t)n, sizeof *values, by_value);
  printf("%s %ld %.3f %.3f %.3f %s\n", what, block, values[n / 2], values[0], values[n - 1], unit);
  fflush(stdout);
}

static MPI_File open_file(int mode) {
  MPI_File file;
  must(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), "MPI_File_open");
  return file;
}

static void delete_file(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_File_delete(name, MPI_INFO_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
}

// The time from when all are ready until the last one is through.
static double since(double start) {
  double own = MPI_Wtime() - start, last;
  MPI_Allreduce(&own, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return last;
}

static void fill(char* data, long bytes, int turn) {
  for (long i = 0; i < bytes; ++i) data[i] = (char)(i * 31 + rank * 17 + turn);
}

// The same blocks by the system's own calls, each rank for itself.
static void plain(long block, int blocks, char* out, char* in, long bytes) {
  double *writes = malloc((size_t)repetitions * sizeof *writes),
         *reads = malloc((size_t)repetitions * sizeof *reads);
  const int fd = open(name, O_RDWR);
  if (!writes || !reads || fd < 0) fail("no memory, or no file");
  const double megabytes = (double)blocks * (double)block * ranks / 1e6;
  for (int turn = 0; turn < repetitions; ++turn) {
    for (int reading = 0; reading < 2; ++reading) {
      // As before the collective calls, so that the same memory is in the caches.
      if (reading) {
        memset(in, 0, (size_t)bytes);
      } else {
        fill(out, bytes, turn);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      for (long i = 0; i < blocks; ++i) {
        char* data = (reading ? in : out) + i * block;
        const off_t at = (i * ranks + rank) * block;
        if ((reading ? pread(fd, data, (size_t)block, at) : pwrite(fd, data, (size_t)block, at)) !=
            block) {
          fail("pread or pwrite");
        }
      }
      *(reading ? &reads[turn] : &writes[turn]) = megabytes / since(start);
    }
  }
  print("plain_write", block, writes, repetitions, "MB/s");
  print("plain_read", block, reads, repetitions, "MB/s");
  close(fd);
  free(writes), free(reads);
}

static void interleaved(long block, long bytes) {
  const int blocks = (int)(bytes / block);
  char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);
  double *writes = malloc((size_t)repetitions * sizeof *writes),
         *reads = malloc((size_t)repetitions * sizeof *reads), first = 0;
  MPI_Datatype type;
  if (!out || !in || !writes || !reads) fail("no memory");
  MPI_Type_vector(blocks, (int)block, (int)block * ranks, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  delete_file();
  MPI_File file = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR);
  must(MPI_File_set_view(file, (MPI_Offset)block * rank, MPI_BYTE, type, "native", MPI_INFO_NULL),
       "MPI_File_set_view");
  const double megabytes = (double)blocks * (double)block * ranks / 1e6;
  for (int turn = -1; turn < repetitions; ++turn) {
    fill(out, bytes, turn);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    must(MPI_File_write_at_all(file, 0, out, blocks * (int)block, MPI_BYTE, MPI_STATUS_IGNORE),
         "MPI_File_write_at_all");
    const double wrote = megabytes / since(start);
    memset(in, 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    must(MPI_File_read_at_all(file, 0, in, blocks * (int)block, MPI_BYTE, MPI_STATUS_IGNORE),
         "MPI_File_read_at_all");
    const double read = megabytes / since(start);
    if (memcmp(in, out, (size_t)blocks * (size_t)block)) fail("other bytes than were written");
    if (turn < 0) {
      first = wrote;
    } else {
      writes[turn] = wrote;
      reads[turn] = read;
    }
  }
  print("write_all_new", block, &first, 1, "MB/s");
  print("write_all", block, writes, repetitions, "MB/s");
  print("read_all", block, reads, repetitions, "MB/s");
  must(MPI_File_close(&file), "MPI_File_close");
  MPI_Type_free(&type);
  plain(block, blocks, out, in, bytes);
  free(out), free(in), free(writes), free(reads);
}

static void small_writes(void) {
  enum { many = 20000, bytes = 64 };
  char record[bytes];
  double *shared = malloc(many * sizeof *shared), *own = malloc(many * sizeof *own), mean = 0;
  if (!shared || !own) fail("no memory");
  memset(record, 'a' + rank, sizeof record);
  delete_file();
  MPI_File file = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < many; ++i) {
    const double start = MPI_Wtime();
    must(MPI_File_write_shared(file, record, bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared");
    shared[i] = (MPI_Wtime() - start) * 1e6;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < many; ++i) {
    const double start = MPI_Wtime();
    must(MPI_File_write_at(file, (MPI_Offset)(i * ranks + rank) * bytes, record, bytes, MPI_BYTE,
                           MPI_STATUS_IGNORE),
         "write_at");
    own[i] = (MPI_Wtime() - start) * 1e6;
  }
  for (int i = 0; i < many; ++i) mean += shared[i] / many;
  // Of the last rank: the first one may have the pointer.
  if (ranks > 1 && rank == ranks - 1) {
    MPI_Send(shared, many, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
    MPI_Send(own, many, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
    MPI_Send(&mean, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
  } else if (ranks > 1 && rank == 0) {
    MPI_Recv(shared, many, MPI_DOUBLE, ranks - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(own, many, MPI_DOUBLE, ranks - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&mean, 1, MPI_DOUBLE, ranks - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  print("write_shared", bytes, shared, many, "us");
  print("write_shared_mean", bytes, &mean, 1, "us");
  print("write_at", bytes, own, many, "us");
  must(MPI_File_close(&file), "MPI_File_close");
  free(shared), free(own);
}

static void opens(void) {
  double* times = malloc((size_t)repetitions * 10 * sizeof *times);
  if (!times) fail("no memory");
  for (int i = 0; i < repetitions * 10; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_File file = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR);
    times[i] = since(start) * 1e3;
    must(MPI_File_close(&file), "MPI_File_close");
  }
  print("open", 0, times, repetitions * 10, "ms");
  free(times);
}

static volatile double work = 1;
static void compute(double seconds) {
  const double until = MPI_Wtime() + seconds;
  while (MPI_Wtime() < until)
    for (int i = 0; i < 1000; ++i) work = work * 1.0000001;
}

// Of the shorter of writing and computing, what share the two together save.
static void overlap(long bytes) {
  char* data = malloc((size_t)bytes);
  double* shares = malloc((size_t)repetitions * sizeof *shares);
  if (!data || !shares) fail("no memory");
  fill(data, bytes, 0);
  MPI_File file = open_file(MPI_MODE_CREATE | MPI_MODE_RDWR);
  const MPI_Offset at = (MPI_Offset)bytes * rank;
  must(MPI_File_write_at(file, at, data, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write_at");
  for (int turn = 0; turn < repetitions; ++turn) {
    MPI_Request request;
    double start = MPI_Wtime();
    must(MPI_File_write_at(file, at, data, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write_at");
    const double alone = MPI_Wtime() - start;
    start = MPI_Wtime();
    must(MPI_File_iwrite_at(file, at, data, (int)bytes, MPI_BYTE, &request), "iwrite_at");
    compute(alone);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    shares[turn] = 2 - (MPI_Wtime() - start) / alone;
  }
  print("iwrite_overlap", bytes, shares, repetitions, "share");
  must(MPI_File_close(&file), "MPI_File_close");
  free(data), free(shares);
}

int main(int argc, char** argv) {
  long blocks[] = {512, 4096, 65536, 1 << 20, 0};  // and one in one piece
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2) fail("pass a folder for the file");
  snprintf(name, sizeof name, "%s/headway-bench-files", argv[1]);
  const long bytes = (argc > 2 ? atol(argv[2]) : 16) * (1 << 20);
  if (argc > 3) repetitions = atoi(argv[3]);
  if (bytes < 1 << 20 || bytes > 1 << 30 || repetitions < 1)
    fail("1 to 1024 MB, 1 repetition or more");
  blocks[sizeof blocks / sizeof *blocks - 1] = bytes;
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) interleaved(blocks[i], bytes);
  small_writes();
  opens();
  overlap(bytes);
  delete_file();
  MPI_Finalize();
  return 0;
}
