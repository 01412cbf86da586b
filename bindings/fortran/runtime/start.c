/* start: tells the library of C, when this one is loaded, what Fortran it serves (MPI 5.0, section
   20.5): how large its numbers are, and what .TRUE. and .FALSE. look like. Before main, so before
   MPI_Init, and also where the main program is in C; MPICH 5.0 ends a process that asks so early,
   so libraries of others are told when Fortran's MPI_Init is over. What another told before stays:
   equal values are no mistake, and of others whoever told them knows better than a library with a
   default.

   Also what mpifort asks of a new compiler: whether its descriptors, texts and absent arguments are
   those that this library reads. Thread: any. Owner: none. */
#include <string.h>

#include "fortran.h"

__thread uintptr_t hf_site;
static uintptr_t site(void) { return hf_site; }
/* Of Headway's library of C; another has no such function. */
extern void headway_call_sites_from(uintptr_t (*from)(void)) __attribute__((weak));

static void tell_sizes(void) {
  static const struct {
    const char *key, *value;
  } facts[] = {
      {"mpi_logical_size", "4"},
      {"mpi_integer_size", "4"},
      {"mpi_real_size", "4"},
      {"mpi_double_precision_size", "8"},
      {"mpi_logical1_supported", "true"},
      {"mpi_logical2_supported", "true"},
      {"mpi_logical4_supported", "true"},
      {"mpi_logical8_supported", "true"},
      {"mpi_integer1_supported", "true"},
      {"mpi_integer2_supported", "true"},
      {"mpi_integer4_supported", "true"},
      {"mpi_integer8_supported", "true"},
      {"mpi_real4_supported", "true"},
      {"mpi_real8_supported", "true"},
      {"mpi_complex8_supported", "true"},
      {"mpi_complex16_supported", "true"},
      {"mpi_double_complex_supported", "true"},
  };
  MPI_Info info = MPI_INFO_NULL;
  if (PMPI_Abi_get_fortran_info(&info) != MPI_SUCCESS) return;
  if (info != MPI_INFO_NULL) {
    PMPI_Info_free(&info);
    return;
  }
  if (PMPI_Info_create(&info) != MPI_SUCCESS) return;
  for (size_t i = 0; i < sizeof facts / sizeof *facts; ++i)
    PMPI_Info_set(info, facts[i].key, facts[i].value);
  PMPI_Abi_set_fortran_info(info);
  PMPI_Info_free(&info);
}

static void tell(void) {
  int truth = headway_fortran_logical[0], falsehood = headway_fortran_logical[1];
  int known_truth, known_falsehood, is_set = 0;
  if (PMPI_Abi_get_fortran_booleans(sizeof truth, &known_truth, &known_falsehood, &is_set) ==
          MPI_SUCCESS &&
      !is_set)
    PMPI_Abi_set_fortran_booleans(sizeof truth, &truth, &falsehood);
  tell_sizes();
}

static int is_of_headway(void) { return headway_call_sites_from != NULL; }

__attribute__((constructor)) static void tell_early(void) {
  if (!is_of_headway()) return;
  tell();
  headway_call_sites_from(site);
}

void hf_initialized(int code) {
  if (code == MPI_SUCCESS && !is_of_headway()) tell();
}

/* ---- what mpifort asks (modules/check.f90) ---- */

/* `section` is values(2:6:2, 2:3) of an array of 7 by 4 INTEGERs; `size` an array of assumed size,
   and `absent` is. 0, or what is not as it should be. */
HF_API int headway_fortran_check_arrays(const HfDescriptor* section, const HfDescriptor* size,
                                        const HfDescriptor* scalar, const int* absent);
int headway_fortran_check_arrays(const HfDescriptor* section, const HfDescriptor* size,
                                 const HfDescriptor* scalar, const int* absent) {
  if (section->item != sizeof(int) || section->rank != 2) return 1;
  if (section->dimensions[0].extent != 3 || section->dimensions[1].extent != 2) return 2;
  if (section->dimensions[0].stride != 2 * (int)sizeof(int)) return 3;
  if (section->dimensions[1].stride != 7 * (int)sizeof(int)) return 4;
  if (*(const int*)section->base != 9) return 5; /* values(i, j) is its place from 1 on */
  if (hf_is_contiguous(section)) return 6;
  if (size->rank != 1 || !hf_is_contiguous(size)) return 7;
  if (scalar->rank != 0 || scalar->item != sizeof(double)) return 8;
  return absent ? 9 : 0;
}

/* gfortran before 12 leaves other bounds in an array that was handed over so. */
HF_API void headway_fortran_check_bounds(const HfDescriptor* array);
void headway_fortran_check_bounds(const HfDescriptor* array) { (void)array; }

/* No BIND(C): as mpi_f08 declares what takes texts. */
HF_API void headway_fortran_check_text_(const char* text, const int* number, int* outcome,
                                        size_t length);
void headway_fortran_check_text_(const char* text, const int* number, int* outcome, size_t length) {
  *outcome = length != 5 || memcmp(text, "text ", 5) != 0 || *number != 7;
}
