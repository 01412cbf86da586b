/* Entries whose texts have a length that the caller tells, lists of texts, and those of Fortran
   alone. Compiled twice (fortran.h). */
#include <stdlib.h>
#include <string.h>

#include "fortran.h"

/* ---- infos ---- */

/* A value of at most `room` characters, as the caller's variable has them. */
static void put_value(char* value, size_t length, size_t room, const char* text) {
  hf_put_text(value, length < room ? length : room, text);
  if (room < length) memset(value + room, ' ', length - room);
}

HF_ENTRY(void, info_get, INFO_GET,
         (const MPI_Fint* info, const char* key, const int* valuelen, char* value, MPI_Fint* flag,
          int* ierror, size_t key_length, size_t value_length)) {
  HfText name;
  int found = 0;
  char* text = malloc((*valuelen > 0 ? (size_t)*valuelen : 0) + 1);
  if (!text || !hf_text(&name, key, key_length, 1)) {
    free(text);
    hf_give(ierror, hf_no_memory("MPI_Info_get", HF_SELF));
    return;
  }
  *text = '\0';
  const int code = C(Info_get)(hf_from_Info(*info), name.text, *valuelen, text, &found);
  if (code == MPI_SUCCESS) {
    *flag = hf_logical(found);
    if (found) put_value(value, value_length, (size_t)*valuelen, text);
  }
  hf_text_end(&name);
  free(text);
  hf_give(ierror, code);
}

/* Fortran's lengths do not count C's NUL. */
HF_ENTRY(void, info_get_string, INFO_GET_STRING,
         (const MPI_Fint* info, const char* key, int* buflen, char* value, MPI_Fint* flag,
          int* ierror, size_t key_length, size_t value_length)) {
  HfText name;
  int found = 0, length = *buflen > 0 ? *buflen + 1 : 0;
  char* text = malloc((size_t)length + 1);
  if (!text || !hf_text(&name, key, key_length, 1)) {
    free(text);
    hf_give(ierror, hf_no_memory("MPI_Info_get_string", HF_SELF));
    return;
  }
  *text = '\0';
  const int room = *buflen;
  const int code = C(Info_get_string)(hf_from_Info(*info), name.text, &length, text, &found);
  if (code == MPI_SUCCESS) {
    *flag = hf_logical(found);
    if (found && room > 0) put_value(value, value_length, (size_t)room, text);
    if (found) *buflen = length - 1;
  }
  hf_text_end(&name);
  free(text);
  hf_give(ierror, code);
}

HF_ENTRY(void, session_get_nth_pset, SESSION_GET_NTH_PSET,
         (const MPI_Fint* session, const MPI_Fint* info, const int* n, int* pset_len,
          char* pset_name, int* ierror, size_t pset_name_length)) {
  int length = *pset_len > 0 ? *pset_len + 1 : 0;
  char* text = malloc((size_t)length + 1);
  if (!text) {
    hf_give(ierror, hf_no_memory("MPI_Session_get_nth_pset", HF_SESSION(*session)));
    return;
  }
  *text = '\0';
  const int room = *pset_len;
  const int code =
      C(Session_get_nth_pset)(hf_from_Session(*session), hf_from_Info(*info), *n, &length, text);
  if (code == MPI_SUCCESS) {
    if (room > 0) put_value(pset_name, pset_name_length, (size_t)room, text);
    *pset_len = length - 1;
  }
  free(text);
  hf_give(ierror, code);
}

HF_ENTRY(void, info_create_env, INFO_CREATE_ENV, (MPI_Fint * info, int* ierror)) {
  MPI_Info made = MPI_INFO_NULL;
  const int code = C(Info_create_env)(0, NULL, &made);
  if (code == MPI_SUCCESS) *info = hf_to_Info(made);
  hf_give(ierror, code);
}

/* ---- processes ---- */

HF_ENTRY(void, comm_spawn, COMM_SPAWN,
         (const char* command, const char* argv, const int* maxprocs, const MPI_Fint* info,
          const int* root, const MPI_Fint* comm, MPI_Fint* intercomm, int* array_of_errcodes,
          int* ierror, size_t command_length, size_t argv_length)) {
  HfText name;
  char** arguments = MPI_ARGV_NULL;
  int rank = -1;
  MPI_Comm made = MPI_COMM_NULL;
  const MPI_Comm on = hf_from_Comm(*comm);
  PMPI_Comm_rank(on, &rank);
  const int is_root = rank == *root; /* the others' texts mean nothing */
  const int has_arguments = is_root && hf_which_text(argv) < 0;
  if (has_arguments) arguments = hf_texts_of(argv, argv_length, -1, argv_length);
  if ((has_arguments && !arguments) || !hf_text(&name, command, is_root ? command_length : 0, 0)) {
    free(arguments);
    hf_give(ierror, hf_no_memory("MPI_Comm_spawn", HF_COMM(*comm)));
    return;
  }
  const int code = C(Comm_spawn)(name.text, arguments, *maxprocs, hf_from_Info(*info), *root, on,
                                 &made, hf_errcodes(array_of_errcodes));
  if (code == MPI_SUCCESS) *intercomm = hf_to_Comm(made);
  hf_text_end(&name);
  if (has_arguments) free(arguments);
  hf_give(ierror, code);
}

/* Of each command: array_of_argv(i, :), up to a blank one. */
static char*** lists_of(const char* texts, size_t length, int count) {
  char*** lists = calloc((size_t)count, sizeof *lists);
  for (int i = 0; lists && i < count; ++i) {
    lists[i] = hf_texts_of(texts + (size_t)i * length, length, -1, (size_t)count * length);
    if (lists[i]) continue;
    while (i > 0) free(lists[--i]);
    free(lists);
    return NULL;
  }
  return lists;
}

HF_ENTRY(void, comm_spawn_multiple, COMM_SPAWN_MULTIPLE,
         (const int* count, const char* array_of_commands, const char* array_of_argv,
          const int* array_of_maxprocs, const MPI_Fint* array_of_info, const int* root,
          const MPI_Fint* comm, MPI_Fint* intercomm, int* array_of_errcodes, int* ierror,
          size_t commands_length, size_t argv_length)) {
  int rank = -1;
  MPI_Comm made = MPI_COMM_NULL;
  const MPI_Comm on = hf_from_Comm(*comm);
  PMPI_Comm_rank(on, &rank);
  const int programs = rank == *root && *count > 0 ? *count : 0;
  const int has_arguments = programs > 0 && hf_which_text(array_of_argv) < 0;
  char** commands =
      programs ? hf_texts_of(array_of_commands, commands_length, programs, commands_length) : NULL;
  char*** lists = has_arguments ? lists_of(array_of_argv, argv_length, programs) : MPI_ARGVS_NULL;
  MPI_Info* infos = programs ? malloc((size_t)programs * sizeof *infos) : NULL;
  int code;
  if (programs && (!commands || !infos || (has_arguments && !lists))) {
    code = hf_no_memory("MPI_Comm_spawn_multiple", HF_COMM(*comm));
  } else {
    for (int i = 0; i < programs; ++i) infos[i] = hf_from_Info(array_of_info[i]);
    code = C(Comm_spawn_multiple)(*count, commands, lists, array_of_maxprocs, infos, *root, on,
                                  &made, hf_errcodes(array_of_errcodes));
  }
  if (code == MPI_SUCCESS) *intercomm = hf_to_Comm(made);
  for (int i = 0; has_arguments && lists && i < programs; ++i) free(lists[i]);
  if (has_arguments) free(lists);
  free(commands);
  free(infos);
  hf_give(ierror, code);
}

/* ---- start and end ---- */

HF_ENTRY(void, init, INIT, (int* ierror)) {
  HF_NOTE_SITE();
  const int code = C(Init)(NULL, NULL);
  hf_initialized(code);
  hf_give(ierror, code);
}

HF_ENTRY(void, init_thread, INIT_THREAD, (const int* required, int* provided, int* ierror)) {
  HF_NOTE_SITE();
  const int code = C(Init_thread)(NULL, NULL, *required, provided);
  hf_initialized(code);
  hf_give(ierror, code);
}

HF_ENTRY(void, pcontrol, PCONTROL, (const int* level)) { C(Pcontrol)(*level); }

/* ---- functions ---- */

HF_ENTRY(double, wtime, WTIME, (void)) { return C(Wtime)(); }
HF_ENTRY(double, wtick, WTICK, (void)) { return C(Wtick)(); }
HF_ENTRY(MPI_Aint, aint_add, AINT_ADD, (const MPI_Aint* base, const MPI_Aint* disp)) {
  return C(Aint_add)(*base, *disp);
}
HF_ENTRY(MPI_Aint, aint_diff, AINT_DIFF, (const MPI_Aint* addr1, const MPI_Aint* addr2)) {
  return C(Aint_diff)(*addr1, *addr2);
}

/* ---- logicals ---- */

HF_ENTRY(void, abi_set_fortran_booleans, ABI_SET_FORTRAN_BOOLEANS,
         (const int* logical_size, void* logical_true, void* logical_false, int* ierror)) {
  hf_give(ierror, C(Abi_set_fortran_booleans)(*logical_size, logical_true, logical_false));
}
HF_ENTRY(void, abi_get_fortran_booleans, ABI_GET_FORTRAN_BOOLEANS,
         (const int* logical_size, void* logical_true, void* logical_false, MPI_Fint* is_set,
          int* ierror)) {
  int set = 0;
  const int code = C(Abi_get_fortran_booleans)(*logical_size, logical_true, logical_false, &set);
  if (code == MPI_SUCCESS) *is_set = hf_logical(set);
  hf_give(ierror, code);
}

/* ---- of Fortran alone ---- */

/* The same bytes in both forms. */
HF_ENTRY(void, status_f2f08, STATUS_F2F08,
         (const MPI_Fint* f_status, MPI_Fint* f08_status, int* ierror)) {
  memmove(f08_status, f_status, sizeof(MPI_Status));
  hf_give(ierror, MPI_SUCCESS);
}
HF_ENTRY(void, status_f082f, STATUS_F082F,
         (const MPI_Fint* f08_status, MPI_Fint* f_status, int* ierror)) {
  memmove(f_status, f08_status, sizeof(MPI_Status));
  hf_give(ierror, MPI_SUCCESS);
}

/* That it is called is what counts: the compiler takes the buffer for changed. */
HF_ENTRY(void, f_sync_reg, F_SYNC_REG, (void* buf)) { (void)buf; }
HF_ENTRY_F08TS(f_sync_reg, (const HfDescriptor* buf)) { (void)buf; }
