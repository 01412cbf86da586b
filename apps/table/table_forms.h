// The two kinds of table. Thread: main. Collective over MPI_COMM_WORLD.
#pragma once

#include "table/table.h"

namespace table {

std::unique_ptr<Table> make_one_sided(Form form, const Layout& layout);
std::unique_ptr<Table> make_of_messages(const Layout& layout);

}  // namespace table
