/* costs: what a call from Fortran takes beside the same call from C, on one rank: asking for the
   rank, sending a contiguous array, sending a section against a ready datatype of C's. Sends go to
   MPI_PROC_NULL, so that nothing but the call is measured. Prints nanoseconds; with the word
   "check" it fails where a figure is missed by far. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct Dimension {
  intptr_t lower, extent, stride;
} Dimension;
typedef struct Descriptor {
  void* base;
  size_t item;
  int version;
  signed char rank;
  unsigned char rest[3];
  Dimension dimensions[15];
} Descriptor;

void mpi_comm_rank_(const int*, int*, int*);
void mpi_send_f08ts_(const Descriptor*, const int*, const int*, const int*, const int*, const int*,
                     int*);

enum { CALLS = 200000, TURNS = 9 };
static const int world = 0x101, integer = 0x219, nobody = MPI_PROC_NULL, tag = 1;
static int values[1000], count = 100, rank;
static Descriptor whole = {values, sizeof(int), 1, 1, {0}, {{0, 100, 4}}};
static Descriptor section = {values, sizeof(int), 1, 2, {0}, {{0, 10, 8}, {0, 10, 200}}};
static MPI_Datatype ready;

static void rank_of_c(void) { MPI_Comm_rank(MPI_COMM_WORLD, &rank); }
static void rank_of_fortran(void) { mpi_comm_rank_(&world, &rank, NULL); }
static void send_of_c(void) {
  MPI_Send(values, count, MPI_INTEGER, MPI_PROC_NULL, tag, MPI_COMM_WORLD);
}
static void send_of_fortran(void) {
  mpi_send_f08ts_(&whole, &count, &integer, &nobody, &tag, &world, NULL);
}
static void section_of_c(void) { MPI_Send(values, 1, ready, MPI_PROC_NULL, tag, MPI_COMM_WORLD); }
static void section_of_fortran(void) {
  mpi_send_f08ts_(&section, &count, &integer, &nobody, &tag, &world, NULL);
}

/* The fastest of some turns: others had company. */
static double nanoseconds(void (*call)(void)) {
  double least = 1e9;
  for (int turn = 0; turn < TURNS; ++turn) {
    const double start = MPI_Wtime();
    for (int i = 0; i < CALLS; ++i) call();
    const double each = (MPI_Wtime() - start) / CALLS * 1e9;
    if (each < least) least = each;
  }
  return least;
}

int main(int argc, char** argv) {
  static const struct {
    const char* what;
    void (*c)(void);
    void (*fortran)(void);
    double wanted;
  } rows[] = {{"the rank", rank_of_c, rank_of_fortran, 2},
              {"a contiguous send", send_of_c, send_of_fortran, 10},
              {"a section", section_of_c, section_of_fortran, 60}};
  int missed = 0;
  MPI_Init(&argc, &argv);
  MPI_Type_create_hvector(10, 1, 8, MPI_INTEGER, &ready);
  MPI_Type_create_hvector(10, 1, 200, ready, &ready);
  MPI_Type_commit(&ready);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    const double c = nanoseconds(rows[i].c), fortran = nanoseconds(rows[i].fortran);
    printf("%s: C %.1f ns, Fortran %.1f ns; %.1f more, %g wanted\n", rows[i].what, c, fortran,
           fortran - c, rows[i].wanted);
    missed += fortran - c > 4 * rows[i].wanted;
  }
  MPI_Type_free(&ready);
  MPI_Finalize();
  return argc > 1 && strcmp(argv[1], "check") == 0 ? missed : 0;
}
