// Who waits for whom as JSON, for `headway where` (hang_watch.h, told_looks.h). Thread: the
// launcher's only one. Owns nothing. Invariant: the document is of version 1, whoever looked.
#pragma once
#include <string>

#include "causes.h"

namespace headway::launcher {

std::string graph_json(const Judgement& judgement, size_t ranks);

}  // namespace headway::launcher
