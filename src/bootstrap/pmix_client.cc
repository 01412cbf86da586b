#include "bootstrap/pmix_client.h"

#include <cstdio>

namespace headway::bootstrap {

Outcome PmixClient::join(PmixIdentity&) {
  snprintf(reason_, sizeof reason_, "it speaks PMIx, which this build does not");
  return Outcome::wrong_launcher;
}
Outcome PmixClient::put(const char*, const char*) { return Outcome::launcher_lost; }
Outcome PmixClient::get(const char*, char*, size_t, int) { return Outcome::launcher_lost; }
Outcome PmixClient::fence() { return Outcome::launcher_lost; }
void PmixClient::abort(int, const char*) {}
void PmixClient::finalize() {}

}  // namespace headway::bootstrap
