// Categories: which options, counters and events belong together: MPI 5.0, section 15.3.9. They are
// fixed, and none is within another.
#include "api/detail/tools.h"

using namespace headway;
using namespace headway::api;

namespace {

using settings::Category;
using settings::category_count;
using settings::category_table;

template <class Row, size_t count>
int count_rows(const Row (&table)[count], Category category) {
  int rows = 0;
  for (const Row& row : table) rows += row.category == category;
  return rows;
}

template <class Row, size_t count>
int give_rows(const char*, const Row (&table)[count], int category, int length, int* indices) {
  if (const int code = tools::check_index(category, category_count)) return code;
  if (length < 0 || (length > 0 && !indices)) return MPI_T_ERR_INVALID;
  for (size_t i = 0; i < count && length > 0; ++i) {
    if (table[i].category != Category(category)) continue;
    *indices++ = int(i);
    --length;
  }
  return MPI_SUCCESS;
}

// Of what no category has any.
int give_none(const char*, int category, int length, const int* indices) {
  if (const int code = tools::check_index(category, category_count)) return code;
  return length < 0 || (length > 0 && !indices) ? MPI_T_ERR_INVALID : MPI_SUCCESS;
}

int category_get_num(const char*, int* num_cat) {
  if (const int code = tools::check_places(num_cat)) return code;
  *num_cat = int(category_count);
  return MPI_SUCCESS;
}

int category_get_info(const char*, int cat_index, char* name, int* name_len, char* desc,
                      int* desc_len, int* num_cvars, int* num_pvars, int* num_categories) {
  if (const int code = tools::check_index(cat_index, category_count)) return code;
  const settings::CategoryInfo& row = category_table[cat_index];
  tools::give_text(name, name_len, tools::public_name(row.name).c_str());
  tools::give_text(desc, desc_len, row.help);
  tools::give(num_cvars, count_rows(settings::option_table, Category(cat_index)));
  tools::give(num_pvars, count_rows(settings::counter_table, Category(cat_index)));
  tools::give(num_categories, 0);
  return MPI_SUCCESS;
}

int category_get_index(const char*, const char* name, int* cat_index) {
  if (const int code = tools::check_places(name, cat_index)) return code;
  const size_t found = tools::find_row(category_table, category_count, name);
  if (found == category_count) return MPI_T_ERR_INVALID_NAME;
  *cat_index = int(found);
  return MPI_SUCCESS;
}

int category_get_num_events(const char*, int cat_index, int* num_events) {
  if (const int code = tools::check_index(cat_index, category_count)) return code;
  if (const int code = tools::check_places(num_events)) return code;
  *num_events = count_rows(settings::event_table, Category(cat_index));
  return MPI_SUCCESS;
}

int category_changed(const char*, int* update_number) {
  if (const int code = tools::check_places(update_number)) return code;
  *update_number = 0;
  return MPI_SUCCESS;
}

}  // namespace

#include "api/entries/tools_categories.inl"
