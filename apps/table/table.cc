#include "table/table_forms.h"

#include "common/hash.h"

namespace table {

int Layout::owner(uint64_t key) const {
  return static_cast<int>(apps::mix(key) % static_cast<uint64_t>(ranks));
}

uint64_t Layout::first_slot(uint64_t key) const {
  return apps::mix(key ^ 0x5bd1e995u) / static_cast<uint64_t>(ranks) % slots;
}

std::unique_ptr<Table> make_table(Form form, const Layout& layout) {
  return form == Form::messages ? make_of_messages(layout) : make_one_sided(form, layout);
}

const char* name_of(Form form) {
  return form == Form::allocated ? "allocated" : form == Form::created ? "created" : "messages";
}

}  // namespace table
