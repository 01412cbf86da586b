// Error codes and their texts, predefined and made by the user. Thread: any. Owner: the table in
// error_codes.cc. Invariant: a code's class is the code itself for predefined ones.
#pragma once
#include "base/text.h"

namespace headway::api {

using Line = base::Text<1024>;

int error_class(int code);
// Is it one of the standard's or of the program's?
bool is_error_code(int code);
// "MPI_ERR_RANK", or the user's string, or "an error".
const char* error_name(int code);
// The largest code of the program and of the library so far: MPI_LASTUSEDCODE.
int last_used_code();

}  // namespace headway::api
