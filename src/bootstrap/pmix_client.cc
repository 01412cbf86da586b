#include "bootstrap/pmix_client.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <unistd.h>

#include "base/check.h"
#include "bootstrap/environment.h"

namespace headway::bootstrap {
namespace {

constexpr const char* library_name = "libpmix.so.2";
// That a server may take to fetch what another machine's rank has put.
constexpr int answer_timeout_s = 120;

void* open_library(const char* folder, const char* below) {
  char path[1024];
  if (!folder || !*folder) return nullptr;
  if (snprintf(path, sizeof path, "%s/%s/%s", folder, below, library_name) >= int(sizeof path)) {
    return nullptr;
  }
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

// The libpmix in the memory map of a process.
void* open_library_of(long pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/maps", pid);
  FILE* const maps = fopen(path, "re");
  if (!maps) return nullptr;
  void* library = nullptr;
  char line[4096];
  while (!library && fgets(line, sizeof line, maps)) {
    char* const name = strchr(line, '/');
    if (!name || !strstr(name, "/libpmix.so.2")) continue;
    name[strcspn(name, "\n")] = '\0';
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  fclose(maps);
  return library;
}

// The library that the launcher itself uses surely speaks with its server; another version, though
// it lies on the search path, may not (PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER). The launcher is
// the nearest ancestor that has one: shells and wrappers may stand between.
void* open_library_of_launcher() {
  constexpr int most_ancestors = 64;
  long pid = getppid();
  for (int i = 0; i < most_ancestors && pid > 0; ++i) {
    if (void* library = open_library_of(pid)) return library;
    pid = parent_of(pid);
  }
  return nullptr;
}

void* find_library() {
  if (void* library = open_library_of_launcher()) return library;
  if (void* library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL)) return library;
  for (const char* variable : {"PMIX_PREFIX", "PMIX_INSTALL_PREFIX", "OPAL_PREFIX"}) {
    for (const char* below : {"lib", "lib64", "lib/openmpi", "lib/x86_64-linux-gnu/pmix2/lib"}) {
      if (void* library = open_library(getenv(variable), below)) return library;
    }
  }
  return nullptr;
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

pmix::Info yes(const char* key) {
  pmix::Info info = {};
  snprintf(info.key, sizeof info.key, "%s", key);
  info.value.type = pmix::type_bool;
  info.value.data.flag = true;
  return info;
}

pmix::Info seconds(const char* key, int value) {
  pmix::Info info = {};
  snprintf(info.key, sizeof info.key, "%s", key);
  info.value.type = pmix::type_int;
  info.value.data.integer = value;
  return info;
}

// Values that PMIx hands out are ours to free, with what they hold.
void release(pmix::Value* value) {
  if (value->type == pmix::type_string) free(value->data.string);
  free(value);
}

}  // namespace

bool PmixClient::load() {
  void* const library = find_library();
  if (!library) {
    snprintf(reason_, sizeof reason_, "it speaks PMIx, and %s is not to be found", library_name);
    return false;
  }
  const bool complete =
      find(library, "PMIx_Init", pmix_.init) && find(library, "PMIx_Finalize", pmix_.finalize) &&
      find(library, "PMIx_Abort", pmix_.abort) && find(library, "PMIx_Put", pmix_.put) &&
      find(library, "PMIx_Commit", pmix_.commit) && find(library, "PMIx_Fence", pmix_.fence) &&
      find(library, "PMIx_Get", pmix_.get) &&
      find(library, "PMIx_Error_string", pmix_.error_string);
  // It stays loaded: it has threads.
  if (!complete) snprintf(reason_, sizeof reason_, "%s is not complete", library_name);
  return complete;
}

Outcome PmixClient::join(PmixIdentity& identity) {
  if (!load()) return Outcome::wrong_launcher;
  const pmix::Status status = pmix_.init(&self_, nullptr, 0);
  if (status != pmix::success) {
    snprintf(reason_, sizeof reason_, "its PMIx server does not take us: %s",
             pmix_.error_string(status));
    return Outcome::wrong_launcher;
  }
  joined_ = true;
  identity.rank = static_cast<int>(self_.rank);
  if (!get_number(pmix::rank_wildcard, "pmix.job.size", identity.size) ||
      identity.size <= identity.rank) {
    snprintf(reason_, sizeof reason_, "its PMIx server does not tell the number of ranks");
    finalize();
    return Outcome::wrong_launcher;
  }
  identity.universe_size = identity.size;
  int number;
  if (get_number(pmix::rank_wildcard, "pmix.univ.size", number) && number > 0) {
    identity.universe_size = number;
  }
  if (get_number(self_.rank, "pmix.appnum", number)) identity.appnum = number;
  return Outcome::ok;
}

pmix::Process PmixClient::process(uint32_t rank) const {
  HEADWAY_CHECK(joined_);
  pmix::Process result = self_;
  result.rank = rank;
  return result;
}

bool PmixClient::get_number(uint32_t rank, const char* key, int& number) const {
  const pmix::Process whose = process(rank);
  pmix::Value* value = nullptr;
  if (pmix_.get(&whose, key, nullptr, 0, &value) != pmix::success || !value) return false;
  const bool fits = value->type == pmix::type_uint32 && value->data.uint32 <= INT32_MAX;
  if (fits) number = static_cast<int>(value->data.uint32);
  release(value);
  return fits;
}

Outcome PmixClient::say_no(Outcome outcome, pmix::Status status) {
  snprintf(reason_, sizeof reason_, "%s", pmix_.error_string(status));
  return outcome;
}

Outcome PmixClient::put(const char* key, const char* text) {
  reason_[0] = '\0';
  if (!joined_) return Outcome::launcher_lost;
  if (strlen(key) >= key_max || strlen(text) >= value_max) return Outcome::too_long;
  pmix::Value value = {};
  value.type = pmix::type_string;
  value.data.string = const_cast<char*>(text);  // it is copied
  const pmix::Status status = pmix_.put(pmix::scope_global, key, &value);
  return status == pmix::success ? Outcome::ok : say_no(Outcome::refused, status);
}

// At once, a server tells what it has. That may be all there is, or what the ranks of this machine
// have put: PRRTE fetches what others put only for who is ready to wait. For a key without an
// owner, or of this machine, nobody is asked to wait, since nobody may ever put it.
pmix::Value* PmixClient::ask(const char* key, int owner, pmix::Status& status) const {
  const pmix::Process whose =
      process(owner == any_rank ? pmix::rank_undefined : static_cast<uint32_t>(owner));
  const pmix::Info how[] = {seconds("pmix.timeout", answer_timeout_s), yes("pmix.immediate")};
  pmix::Value* value = nullptr;
  status = pmix_.get(&whose, key, how, 2, &value);
  if (status == pmix::success && value) return value;
  const int node = owner == any_rank ? -1 : node_of(owner);
  if (owner == any_rank || (node >= 0 && node == node_of(int(self_.rank)))) return nullptr;
  value = nullptr;
  status = pmix_.get(&whose, key, how, 1, &value);
  return status == pmix::success ? value : nullptr;
}

Outcome PmixClient::get(const char* key, char* out, size_t capacity, int owner) {
  reason_[0] = '\0';
  if (!joined_) return Outcome::launcher_lost;
  pmix::Status status = pmix::success;
  pmix::Value* const value = ask(key, owner, status);
  // The names of "no" differ between versions and data stores; a lost server shows at the fence.
  if (!value) return say_no(Outcome::not_found, status);
  Outcome outcome = Outcome::bad_reply;
  if (value->type == pmix::type_string && value->data.string) {
    const size_t size = strlen(value->data.string);
    outcome = size < capacity ? Outcome::ok : Outcome::too_long;
    if (outcome == Outcome::ok) memcpy(out, value->data.string, size + 1);
  }
  release(value);
  return outcome;
}

Outcome PmixClient::fence() {
  reason_[0] = '\0';
  if (!joined_) return Outcome::launcher_lost;
  pmix::Status status = pmix_.commit();
  if (status != pmix::success) return say_no(Outcome::refused, status);
  const pmix::Info collect = yes("pmix.collect");
  status = pmix_.fence(nullptr, 0, &collect, 1);
  return status == pmix::success ? Outcome::ok : say_no(Outcome::launcher_lost, status);
}

int PmixClient::node_of(int rank) const {
  int node = -1;
  if (!joined_ || !get_number(static_cast<uint32_t>(rank), "pmix.nodeid", node)) return -1;
  return node;
}

Beside PmixClient::beside() const {
  Beside result;
  if (!joined_) return result;
  const pmix::Process all = process(pmix::rank_wildcard);
  pmix::Value* value = nullptr;
  if (pmix_.get(&all, "pmix.lpeers", nullptr, 0, &value) != pmix::success || !value) return result;
  const bool is_text = value->type == pmix::type_string && value->data.string;
  if (is_text && !parse_ranks(value->data.string, result)) result = {};
  release(value);
  return result;
}

void PmixClient::abort(int exit_code, const char* message) const {
  if (joined_) pmix_.abort(exit_code, message, nullptr, 0);
}

void PmixClient::finalize() {
  if (!joined_) return;
  joined_ = false;
  pmix_.finalize(nullptr, 0);
}

}  // namespace headway::bootstrap
