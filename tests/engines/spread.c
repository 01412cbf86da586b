/* A job that tells where its ranks are: each prints a line with its rank, its machine, how many
   ranks share that machine's memory, its folder and the variables whose names begin with T_. Then,
   by the first word:
     abort C | exit C | signal N   rank 7 (the last one, if there are fewer) ends so, others wait
     wait                          all wait for ever
     input [first]                 each, or rank 0, prints how many bytes came from its stdin
     lines N                       each prints N long lines
     program                       each prints the number of its program (MPI_APPNUM)
     errors                        each prints a line to stderr
   Whatever it is, rank 0 prints "ok" at a good end. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { longest = 1 << 12 };

extern char** environ;

static int rank, size;

static void tell_place(int argc, char** argv) {
  char name[MPI_MAX_PROCESSOR_NAME], folder[longest], line[2 * longest];
  int length, beside;
  MPI_Comm here;
  MPI_Get_processor_name(name, &length);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_size(here, &beside);
  MPI_Comm_free(&here);
  if (!getcwd(folder, sizeof folder)) folder[0] = 0;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  int at = snprintf(line, sizeof line, "rank %d of %d on %s beside %d in %s", rank, size, host,
                    beside, folder);
  for (char** entry = environ; *entry && at < longest; ++entry) {
    if (strncmp(*entry, "T_", 2) != 0 || strlen(*entry) > longest / 2) continue;
    at += snprintf(line + at, sizeof line - (size_t)at, " %s", *entry);
  }
  printf("%s told %s\n", line, argc > 2 ? argv[argc - 1] : "nothing");
  fflush(stdout);
}

static void wait_for_ever(void) {
  char byte;
  MPI_Recv(&byte, 1, MPI_BYTE, rank == 0 ? size - 1 : 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void die(const char* how, int number) {
  const int victim = size > 7 ? 7 : size - 1;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != victim) wait_for_ever();
  if (strcmp(how, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, number);
  if (strcmp(how, "exit") == 0) exit(number);
  raise(number);
}

static void count_input(void) {
  char piece[longest];
  long long sum = 0;
  for (ssize_t n; (n = read(0, piece, sizeof piece)) > 0;) sum += n;
  printf("rank %d read %lld\n", rank, sum);
}

static void tell_program(void) {
  int *number, found;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found);
  printf("rank %d is of program %d\n", rank, found ? *number : -1);
}

static void print_lines(int count) {
  for (int i = 0; i < count; ++i) {
    printf("line %d of rank %d %0150d end\n", i, rank, 0);
    if (i % 10 == 0) fflush(stdout);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  tell_place(argc, argv);
  const char* what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  if (strcmp(what, "abort") == 0 || strcmp(what, "exit") == 0 || strcmp(what, "signal") == 0) {
    die(what, number);
  }
  if (strcmp(what, "wait") == 0) wait_for_ever();
  if (strcmp(what, "input") == 0 && (rank == 0 || argc < 3)) count_input();
  if (strcmp(what, "program") == 0) tell_program();
  if (strcmp(what, "lines") == 0) print_lines(number);
  if (strcmp(what, "errors") == 0) fprintf(stderr, "error of rank %d\n", rank);
  fflush(stdout);
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0 && sum == size) puts("ok");
  return sum == size ? 0 : 1;
}
