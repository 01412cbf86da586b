#include "base/machine.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/sanitizer.h"

namespace headway::base {
namespace {

constexpr size_t path_max = 1024;
constexpr size_t name_max = 32;  // of a file in a group, with its slash

bool read_start(const char* path, char* out, size_t room) {
  const int fd = with_room([&] { return open(path, O_RDONLY | O_CLOEXEC); });
  if (fd < 0) return false;
  const ssize_t n = read(fd, out, room - 1);
  close(fd);
  out[n > 0 ? n : 0] = '\0';
  return n > 0;
}

// The lines of a file; those that do not fit into the buffer are left out.
class Lines {
 public:
  Lines(const char* root, const char* path) {
    char whole[path_max];
    if (size_t(snprintf(whole, sizeof whole, "%s%s", root, path)) < sizeof whole) {
      fd_ = with_room([&] { return open(whole, O_RDONLY | O_CLOEXEC); });
    }
  }
  ~Lines() {
    if (fd_ >= 0) close(fd_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // The next line, which may be written to until the next call; null at the end.
  char* next() {
    for (bool whole = true;;) {
      char* const start = buffer_ + taken_;
      if (auto* end = static_cast<char*>(memchr(start, '\n', filled_ - taken_))) {
        *end = '\0';
        taken_ = size_t(end + 1 - buffer_);
        if (whole) return start;
        whole = true;
        continue;
      }
      if (taken_ == 0 && filled_ == sizeof buffer_) {
        whole = false;
        filled_ = 0;
      }
      filled_ -= taken_;
      memmove(buffer_, buffer_ + taken_, filled_);
      taken_ = 0;
      const ssize_t n = fd_ >= 0 ? read(fd_, buffer_ + filled_, sizeof buffer_ - filled_) : 0;
      if (n <= 0) return nullptr;  // these files end with a newline
      filled_ += size_t(n);
    }
  }

 private:
  int fd_ = -1;
  size_t taken_ = 0, filled_ = 0;
  char buffer_[4096];
};

bool has_word(const char* list, const char* word) {
  const size_t length = strlen(word);
  for (const char* at = list; at; at = strchr(at, ',')) {
    if (*at == ',') ++at;
    if (!strncmp(at, word, length) && (at[length] == ',' || at[length] == '\0')) return true;
  }
  return false;
}

// The group of this process in the hierarchy that holds the cpu controller: of version 2 in the
// line "0::PATH", of version 1 in the line "N:cpu,cpuacct:PATH". Empty where there is none.
struct Groups {
  char two[path_max] = "";
  char one[path_max] = "";
};

void read_groups(const char* root, Groups& groups) {
  Lines lines(root, "/proc/self/cgroup");
  while (char* line = lines.next()) {
    char* const controllers = strchr(line, ':');
    char* const path = controllers ? strchr(controllers + 1, ':') : nullptr;
    if (!path) continue;
    *path = '\0';
    char* target = nullptr;
    if (controllers[1] == '\0') target = groups.two;
    if (has_word(controllers + 1, "cpu")) target = groups.one;
    if (target && strlen(path + 1) < path_max) strcpy(target, path + 1);
  }
}

// A line of mountinfo: "36 35 0:30 ROOT POINT options ... - TYPE source OPTIONS".
struct Mount {
  const char* root;
  const char* point;
  const char* type;
  const char* options;
};

bool parse_mount(char* line, Mount& mount) {
  constexpr int root_field = 3, point_field = 4;
  const char* fields[6] = {};
  int field = 0;
  int behind_dash = -1;
  char* rest = nullptr;
  for (char* word = strtok_r(line, " ", &rest); word; word = strtok_r(nullptr, " ", &rest)) {
    if (behind_dash < 0 && field > point_field && !strcmp(word, "-")) {
      behind_dash = 0;
    } else if (behind_dash >= 0) {
      if (behind_dash == 0) mount.type = word;
      if (behind_dash == 2) mount.options = word;
      ++behind_dash;
    } else {
      if (field < 6) fields[field] = word;
      ++field;
    }
  }
  mount.root = fields[root_field];
  mount.point = fields[point_field];
  return behind_dash >= 3;
}

double cores_of(double quota, double period) {
  return quota > 0 && period > 0 ? quota / period : no_quota;
}

// The limit of one group, whose folder is `path`, which has room for a name behind it.
double quota_of_group(char* path, size_t length, bool version_2) {
  char text[64];
  const auto read_file = [&](const char* name) {
    strcpy(path + length, name);
    const bool done = read_start(path, text, sizeof text);
    path[length] = '\0';
    return done;
  };
  if (version_2) {  // "max 100000" or "150000 100000"
    if (!read_file("/cpu.max") || !strncmp(text, "max", 3)) return no_quota;
    char* rest = nullptr;
    const double quota = strtod(text, &rest);
    return cores_of(quota, strtod(rest, nullptr));
  }
  if (!read_file("/cpu.cfs_quota_us")) return no_quota;
  const double quota = strtod(text, nullptr);  // -1: none
  if (!read_file("/cpu.cfs_period_us")) return no_quota;
  return cores_of(quota, strtod(text, nullptr));
}

// The part of a group's path below what is mounted; "" where the group lies outside, as in
// containers that see the host's paths in /proc but not in the mount.
const char* below(const char* group, const char* mount_root) {
  const size_t length = strcmp(mount_root, "/") ? strlen(mount_root) : 0;
  if (strncmp(group, mount_root, length) != 0) return "";
  const char* rest = group + length;
  return *rest == '/' && rest[1] && strncmp(rest, "/..", 3) != 0 ? rest : "";
}

// The least limit of a group and those above it.
double quota_of_mount(const char* root, const Mount& mount, const char* group, bool version_2) {
  char path[path_max];
  const int start = snprintf(path, sizeof path, "%s%s", root, mount.point);
  const int whole =
      snprintf(path, sizeof path, "%s%s%s", root, mount.point, below(group, mount.root));
  if (size_t(whole) + name_max > sizeof path) return no_quota;
  double least = no_quota;
  for (int end = whole; end >= start; --end) {
    if (end != whole && end != start && path[end] != '/') continue;
    path[end] = '\0';
    const double quota = quota_of_group(path, size_t(end), version_2);
    if (quota < least) least = quota;
  }
  return least;
}

}  // namespace

double cpu_quota(const char* root) {
  Groups groups;
  read_groups(root, groups);
  double least = no_quota;
  Lines lines(root, "/proc/self/mountinfo");
  while (char* line = lines.next()) {
    Mount mount{};
    if (!strstr(line, " - cgroup") || !parse_mount(line, mount)) continue;
    const bool version_2 = !strcmp(mount.type, "cgroup2");
    if (!version_2 && (strcmp(mount.type, "cgroup") != 0 || !has_word(mount.options, "cpu"))) {
      continue;
    }
    const char* group = version_2 ? groups.two : groups.one;
    if (!*group) continue;
    const double quota = quota_of_mount(root, mount, group, version_2);
    if (quota < least) least = quota;
  }
  return least;
}

bool under_valgrind() {
  // It puts its own library first; programs that it does not follow into lose the variable.
  const char* preloaded = getenv("LD_PRELOAD");
  return preloaded && strstr(preloaded, "/vgpreload_");
}

bool has_one_thread() {
  struct stat tasks;
  // A folder has two links of its own, and one for each folder in it: a thread.
  constexpr nlink_t this_and_message_thread = 2 + 2 + foreign_threads;
  return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink <= this_and_message_thread;
}

}  // namespace headway::base
