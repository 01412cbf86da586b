// headway-judge: what two looks at the ranks of a job prove, told by whoever looked (told_looks.h)
// on its input; who waits for whom, as JSON, on its output. `headway where` of a recording calls
// it, so that one proof serves all jobs.
#include <cstdio>
#include <iostream>

#include "graph_json.h"
#include "say.h"
#include "told_looks.h"

int main() {
  using namespace headway::launcher;
  std::ios::sync_with_stdio(false);
  ToldLooks looks;
  if (const std::string wrong = read_looks(std::cin, looks); !wrong.empty()) {
    fprintf(stderr, "headway-judge: %s\n", wrong.c_str());
    return 2;
  }
  const size_t ranks = looks.after.size();
  const std::string told =
      graph_json(Judgement(looks.before, std::move(looks.after), looks.seconds), ranks);
  return fwrite(told.data(), 1, told.size(), stdout) == told.size() && fflush(stdout) == 0 ? 0 : 1;
}
