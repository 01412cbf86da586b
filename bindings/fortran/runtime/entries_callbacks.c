/* Entries that take procedures, and values of attributes. Compiled twice (fortran.h). */
#include <stdlib.h>

#include "callbacks.h"
#include "fortran.h"

static const char* const full =
    "there are 256 procedures of this kind already, and a library in C has no room for more. "
    "Likely remedy: give the same procedure again instead of another one";

/* ---- operations ---- */

HF_ENTRY(void, op_create, OP_CREATE,
         (HfFunction user_fn, const MPI_Fint* commute, MPI_Fint* op, int* ierror)) {
  MPI_User_function* function = hf_operation(user_fn);
  MPI_Op made = MPI_OP_NULL;
  const int code = function ? C(Op_create)(function, hf_is_true(*commute), &made)
                            : hf_refuse("MPI_Op_create", HF_SELF, MPI_ERR_OTHER, full);
  if (code == MPI_SUCCESS) *op = hf_to_Op(made);
  hf_give(ierror, code);
}

HF_ENTRY_F08(void, op_create_c, OP_CREATE_C,
             (HfFunction user_fn, const MPI_Fint* commute, MPI_Fint* op, int* ierror)) {
  MPI_User_function_c* function = hf_operation_c(user_fn);
  MPI_Op made = MPI_OP_NULL;
  const int code = function ? C(Op_create_c)(function, hf_is_true(*commute), &made)
                            : hf_refuse("MPI_Op_create_c", HF_SELF, MPI_ERR_OTHER, full);
  if (code == MPI_SUCCESS) *op = hf_to_Op(made);
  hf_give(ierror, code);
}

/* ---- error handlers ---- */

#define CREATE_ERRHANDLER(kind, KIND, Kind)                                                    \
  HF_ENTRY(void, kind##_create_errhandler, KIND##_CREATE_ERRHANDLER,                           \
           (HfFunction kind##_errhandler_fn, MPI_Fint * errhandler, int* ierror)) {            \
    MPI_##Kind##_errhandler_function* function = hf_##kind##_errhandler(kind##_errhandler_fn); \
    MPI_Errhandler made = MPI_ERRHANDLER_NULL;                                                 \
    const int code =                                                                           \
        function ? C(Kind##_create_errhandler)(function, &made)                                \
                 : hf_refuse("MPI_" #Kind "_create_errhandler", HF_SELF, MPI_ERR_OTHER, full); \
    if (code == MPI_SUCCESS) *errhandler = hf_to_Errhandler(made);                             \
    hf_give(ierror, code);                                                                     \
  }
CREATE_ERRHANDLER(comm, COMM, Comm)
CREATE_ERRHANDLER(file, FILE, File)
CREATE_ERRHANDLER(session, SESSION, Session)
CREATE_ERRHANDLER(win, WIN, Win)

/* ---- attributes ---- */

#define CREATE_KEYVAL(kind, KIND, Kind)                                                            \
  HF_ENTRY(void, kind##_create_keyval, KIND##_CREATE_KEYVAL,                                       \
           (HfFunction copy_fn, HfFunction delete_fn, int* keyval, const MPI_Aint* extra_state,    \
            int* ierror)) {                                                                        \
    HfProxy* proxy = hf_proxy(copy_fn, delete_fn, NULL, *extra_state, 0);                          \
    const int code = proxy ? C(Kind##_create_keyval)(hf_##kind##_copy(copy_fn),                    \
                                                     hf_##kind##_delete(delete_fn), keyval, proxy) \
                           : hf_no_memory("MPI_" #Kind "_create_keyval", HF_SELF);                 \
    hf_give(ierror, code);                                                                         \
  }
CREATE_KEYVAL(comm, COMM, Comm)
CREATE_KEYVAL(type, TYPE, Type)
CREATE_KEYVAL(win, WIN, Win)

HF_ENTRY_OLD(void, keyval_create, KEYVAL_CREATE,
             (HfFunction copy_fn, HfFunction delete_fn, int* keyval, const MPI_Fint* extra_state,
              int* ierror)) {
  HfProxy* proxy = hf_proxy(copy_fn, delete_fn, NULL, *extra_state, 1);
  const int code =
      proxy ? C(Keyval_create)(hf_comm_copy(copy_fn), hf_comm_delete(delete_fn), keyval, proxy)
            : hf_no_memory("MPI_Keyval_create", HF_SELF);
  hf_give(ierror, code);
}

#define SET_ATTRIBUTE(kind, KIND, Kind)                                                          \
  HF_ENTRY(                                                                                      \
      void, kind##_set_attr, KIND##_SET_ATTR,                                                    \
      (const MPI_Fint* object, const int* keyval, const MPI_Aint* attribute_val, int* ierror)) { \
    void* value = hf_value_to_c(*attribute_val);                                                 \
    hf_give(ierror, value ? C(Kind##_set_attr)(hf_from_##Kind(*object), *keyval, value)          \
                          : hf_no_memory("MPI_" #Kind "_set_attr", HF_SELF));                    \
  }
SET_ATTRIBUTE(comm, COMM, Comm)
SET_ATTRIBUTE(type, TYPE, Type)
SET_ATTRIBUTE(win, WIN, Win)

HF_ENTRY_OLD(void, attr_put, ATTR_PUT,
             (const MPI_Fint* comm, const int* keyval, const MPI_Fint* attribute_val,
              int* ierror)) {
  void* value = hf_value_to_c(*attribute_val);
  hf_give(ierror, value ? C(Attr_put)(hf_from_Comm(*comm), *keyval, value)
                        : hf_no_memory("MPI_Attr_put", HF_COMM(*comm)));
}

/* What C has the address of, Fortran has the value of. */
static MPI_Aint value_of(int keyval, void* value) {
  switch (keyval) {
    case MPI_TAG_UB:
    case MPI_IO:
    case MPI_HOST:
    case MPI_WTIME_IS_GLOBAL:
    case MPI_APPNUM:
    case MPI_LASTUSEDCODE:
    case MPI_UNIVERSE_SIZE:
    case MPI_WIN_DISP_UNIT:
    case MPI_WIN_CREATE_FLAVOR:
    case MPI_WIN_MODEL: return value ? *(const int*)value : 0;
    case MPI_WIN_SIZE: return value ? *(const MPI_Aint*)value : 0;
    case MPI_WIN_BASE: return (MPI_Aint)value;
    default: return hf_value_from_c(value);
  }
}

#define GET_ATTRIBUTE(kind, KIND, Kind)                                                         \
  HF_ENTRY(void, kind##_get_attr, KIND##_GET_ATTR,                                              \
           (const MPI_Fint* object, const int* keyval, MPI_Aint* attribute_val, MPI_Fint* flag, \
            int* ierror)) {                                                                     \
    void* value = NULL;                                                                         \
    int found = 0;                                                                              \
    const int code = C(Kind##_get_attr)(hf_from_##Kind(*object), *keyval, &value, &found);      \
    if (code == MPI_SUCCESS) {                                                                  \
      *flag = hf_logical(found);                                                                \
      if (found) *attribute_val = value_of(*keyval, value);                                     \
    }                                                                                           \
    hf_give(ierror, code);                                                                      \
  }
GET_ATTRIBUTE(comm, COMM, Comm)
GET_ATTRIBUTE(type, TYPE, Type)
GET_ATTRIBUTE(win, WIN, Win)

HF_ENTRY_OLD(void, attr_get, ATTR_GET,
             (const MPI_Fint* comm, const int* keyval, MPI_Fint* attribute_val, MPI_Fint* flag,
              int* ierror)) {
  void* value = NULL;
  int found = 0;
  const int code = C(Attr_get)(hf_from_Comm(*comm), *keyval, &value, &found);
  if (code == MPI_SUCCESS) {
    *flag = hf_logical(found);
    if (found) *attribute_val = (MPI_Fint)value_of(*keyval, value);
  }
  hf_give(ierror, code);
}

/* ---- generalized requests, data representations ---- */

HF_ENTRY(void, grequest_start, GREQUEST_START,
         (HfFunction query_fn, HfFunction free_fn, HfFunction cancel_fn,
          const MPI_Aint* extra_state, MPI_Fint* request, int* ierror)) {
  HfProxy* proxy = hf_proxy(query_fn, free_fn, cancel_fn, *extra_state, 0);
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = proxy ? C(Grequest_start)(hf_grequest_query, hf_grequest_free,
                                             hf_grequest_cancel, proxy, &made)
                         : hf_no_memory("MPI_Grequest_start", HF_SELF);
  hf_new(made, code);
  if (code == MPI_SUCCESS)
    *request = hf_to_Request(made);
  else
    hf_free_proxy(proxy);
  hf_give(ierror, code);
}

HF_ENTRY(void, register_datarep, REGISTER_DATAREP,
         (const char* datarep, HfFunction read_conversion_fn, HfFunction write_conversion_fn,
          HfFunction dtype_file_extent_fn, const MPI_Aint* extra_state, int* ierror,
          size_t datarep_length)) {
  HfText name;
  HfProxy* proxy =
      hf_proxy(dtype_file_extent_fn, read_conversion_fn, write_conversion_fn, *extra_state, 0);
  int code = MPI_ERR_NO_MEM;
  if (proxy && hf_text(&name, datarep, datarep_length, 0)) {
    code = C(Register_datarep)(
        name.text,
        hf_predefined(read_conversion_fn) == HF_OWN ? hf_datarep_read : MPI_CONVERSION_FN_NULL,
        hf_predefined(write_conversion_fn) == HF_OWN ? hf_datarep_write : MPI_CONVERSION_FN_NULL,
        hf_datarep_extent, proxy);
    hf_text_end(&name);
  } else {
    code = hf_no_memory("MPI_Register_datarep", HF_SELF);
  }
  hf_give(ierror, code);
}

HF_ENTRY_F08(void, register_datarep_c, REGISTER_DATAREP_C,
             (const char* datarep, HfFunction read_conversion_fn, HfFunction write_conversion_fn,
              HfFunction dtype_file_extent_fn, const MPI_Aint* extra_state, int* ierror,
              size_t datarep_length)) {
  HfText name;
  HfProxy* proxy =
      hf_proxy(dtype_file_extent_fn, read_conversion_fn, write_conversion_fn, *extra_state, 0);
  int code = MPI_ERR_NO_MEM;
  if (proxy && hf_text(&name, datarep, datarep_length, 0)) {
    code = C(Register_datarep_c)(
        name.text,
        hf_predefined(read_conversion_fn) == HF_OWN ? hf_datarep_read_c : MPI_CONVERSION_FN_NULL_C,
        hf_predefined(write_conversion_fn) == HF_OWN ? hf_datarep_write_c
                                                     : MPI_CONVERSION_FN_NULL_C,
        hf_datarep_extent, proxy);
    hf_text_end(&name);
  } else {
    code = hf_no_memory("MPI_Register_datarep_c", HF_SELF);
  }
  hf_give(ierror, code);
}
