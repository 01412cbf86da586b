// Host lists: the machines of --hosts, of --hostfile and of the files of batch systems, each with
// the number of ranks that it takes. Thread: none. Invariant: each machine stands in it once, in
// the order of its first mention; either nobody said how many ranks go to any of them (all 0), or
// each has a number.
#pragma once
#include <string>
#include <vector>

namespace headway::launcher {

struct Host {
  std::string name;  // or a number, without brackets
  int slots = 0;     // ranks that it takes before the next one does; 0: nobody said
  friend bool operator==(const Host&, const Host&) = default;
};

class HostList {
 public:
  // Each is false with a sentence in `error`.
  // "a,b:2,[::1]:4".
  bool add_list(const std::string& text);
  // Lines "a", "a:2", "a slots=2"; `second_is_slots`: "a 2 ...", as Grid Engine has them.
  bool add_file(const std::string& path, bool second_is_slots = false);
  void add(const std::string& name, int slots);

  // All of them, completed.
  std::vector<Host> hosts() const;
  const std::string& error() const { return error_; }
  // What a file says of a machine beside its slots, with the machine: "user=me (node7)"; or "".
  const std::string& unknown() const { return unknown_; }

 private:
  bool add_entry(const std::string& entry, int slots);

  std::vector<Host> hosts_;
  bool counted_ = false;  // somebody said a number, or named a machine twice
  std::string error_, unknown_;
};

}  // namespace headway::launcher
