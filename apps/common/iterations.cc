#include "common/iterations.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace apps {
namespace {

double sum(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double over_ranks(double mine, MPI_Op op) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
  return all;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<double> means_of_parts(const std::vector<double>& seconds) {
  const size_t parts = std::min<size_t>(20, seconds.size());
  std::vector<double> means;
  for (size_t i = 0; i < parts; ++i) {
    const size_t from = i * seconds.size() / parts, to = (i + 1) * seconds.size() / parts;
    const double total = std::accumulate(seconds.data() + from, seconds.data() + to, 0.0);
    means.push_back(total / static_cast<double>(to - from));
  }
  return means;
}

}  // namespace

void Iterations::done() {
  const double now = MPI_Wtime();
  seconds_.push_back(now - last_);
  mpi_seconds_.push_back(in_mpi_);
  last_ = now;
  in_mpi_ = 0;
}

std::vector<double> Iterations::measured(const std::vector<double>& all) const {
  return {all.begin() + warmup_, all.end()};
}

Summary Iterations::summary(bool computes) const {
  Summary s;
  std::vector<double> mine = total(), all(mine.size());
  const double n = static_cast<double>(mine.size());
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  s.mean = over_ranks(sum(mine), MPI_SUM) / ranks / n;
  MPI_Allreduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);
  for (double& seconds : all) seconds /= ranks;
  s.median = median(all);
  s.parts = means_of_parts(all);
  if (warmup_ > 0) {
    const double before = sum({seconds_.begin(), seconds_.begin() + warmup_});
    s.warmup_mean = over_ranks(before, MPI_SUM) / ranks / static_cast<double>(warmup_);
  }
  const double computing = sum(mine) - sum(in_mpi());
  const double computers = over_ranks(computes ? 1 : 0, MPI_SUM);
  s.computing = over_ranks(computes ? computing : 0, MPI_SUM) / computers / n;
  s.communicating = s.mean - s.computing;
  return s;
}

std::string Summary::json() const {
  char text[256];
  std::snprintf(text, sizeof text,
                "\"iteration\": {\"median\": %.9g, \"mean\": %.9g, \"warmup_mean\": %.9g, "
                "\"computing\": %.9g, \"communicating\": %.9g, \"parts\": [",
                median, mean, warmup_mean, computing, communicating);
  std::string line = text;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::snprintf(text, sizeof text, "%s%.6g", i == 0 ? "" : ", ", parts[i]);
    line += text;
  }
  return line + "]}";
}

}  // namespace apps
