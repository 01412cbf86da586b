// What packing and reducing cost, each beside the loop a programmer would write by hand (pack) or
// beside a plain copy of as many bytes (contiguous, reductions). Contestants are interleaved round
// by round, because the machine changes speed; printed are medians and quartiles of the ratio.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "datatypes/detail/kernel_table.h"
#include "datatypes/pack.h"
#include "datatypes/reduce.h"
#include "datatypes/type.h"

using namespace headway;
using namespace headway::datatypes;

namespace {

using Clock = std::chrono::steady_clock;

void keep(const void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

double seconds(const std::function<void()>& work, int repeats) {
  const auto start = Clock::now();
  for (int i = 0; i < repeats; ++i) work();
  return std::chrono::duration<double>(Clock::now() - start).count() / repeats;
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[size_t(q * double(values.size() - 1))];
}

void compare(const char* what, size_t bytes, const std::function<void()>& ours,
             const std::function<void()>& reference) {
  const int repeats = int(std::max<size_t>(1, (1 << 20) / (bytes + 1)));
  std::vector<double> mine, other, ratios;
  for (int round = 0; round < 60; ++round) {
    const bool first = round % 2;  // who goes first changes, so that neither inherits warm caches
    if (first) mine.push_back(seconds(ours, repeats));
    other.push_back(seconds(reference, repeats));
    if (!first) mine.push_back(seconds(ours, repeats));
    ratios.push_back(mine.back() / other.back());
  }
  printf("%-44s %9zu %9.2f %9.2f   %5.2f  %5.2f..%5.2f\n", what, bytes,
         double(bytes) / quantile(mine, 0.5) * 1e-9, double(bytes) / quantile(other, 0.5) * 1e-9,
         quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75));
}

struct Buffers {
  std::vector<double> laid_out, string;
  explicit Buffers(size_t span, size_t size) : laid_out(span, 1.5), string(size, 2.5) {}
};

void contiguous(size_t bytes) {
  Buffers b(bytes / 8, bytes / 8);
  const Type& d = predefined(BasicType::double_);
  compare(
      "contiguous doubles / memcpy", bytes,
      [&] { pack(d, b.laid_out.data(), bytes / 8, 0, b.string.data(), bytes), keep(&b); },
      [&] { memcpy(b.string.data(), b.laid_out.data(), bytes), keep(&b); });
}

template <size_t block>
void vector(const char* what, size_t blocks, size_t stride) {
  Type* type = nullptr;
  if (make_vector(Form::large, int64_t(blocks), block, int64_t(stride),
                  predefined(BasicType::double_), type) != Outcome::ok) {
    return;
  }
  Buffers b(blocks * stride, blocks * block);
  const auto hand = [&] {
    const double* from = b.laid_out.data();
    double* to = b.string.data();
    for (size_t i = 0; i < blocks; ++i, from += stride) {
      for (size_t j = 0; j < block; ++j) *to++ = from[j];
    }
    keep(&b);
  };
  const size_t bytes = blocks * block * 8;
  char name[80];
  snprintf(name, sizeof name, "pack %s / loop", what);
  compare(
      name, bytes, [&] { pack(*type, b.laid_out.data(), 1, 0, b.string.data(), bytes), keep(&b); },
      hand);
  snprintf(name, sizeof name, "pack %s in 8 KB pieces / loop", what);
  compare(
      name, bytes,
      [&] {
        char* to = reinterpret_cast<char*>(b.string.data());
        for (size_t at = 0; at < bytes; at += 8192) {
          pack(*type, b.laid_out.data(), 1, at, to + at, 8192);
        }
        keep(&b);
      },
      hand);
  snprintf(name, sizeof name, "unpack %s / loop", what);
  compare(
      name, bytes,
      [&] { unpack(*type, b.laid_out.data(), 1, 0, b.string.data(), bytes), keep(&b); },
      [&] {
        double* to = b.laid_out.data();
        const double* from = b.string.data();
        for (size_t i = 0; i < blocks; ++i, to += stride) {
          for (size_t j = 0; j < block; ++j) to[j] = *from++;
        }
        keep(&b);
      });
  type->release();
}

struct Particle {
  double position[3];
  int kind;
  char flag;
};

void records(size_t count) {
  const int blocks[] = {3, 1, 1};
  const int64_t at[] = {offsetof(Particle, position), offsetof(Particle, kind),
                        offsetof(Particle, flag)};
  const Type* members[] = {&predefined(BasicType::double_), &predefined(BasicType::int_),
                           &predefined(BasicType::char_)};
  Type* type = nullptr;
  if (make_struct(Form::narrow, 3, blocks, at, members, type) != Outcome::ok) return;
  std::vector<Particle> laid_out(count);
  std::vector<char> string(count * type->size());
  compare(
      "pack struct{double[3],int,char} / loop", string.size(),
      [&] { pack(*type, laid_out.data(), count, 0, string.data(), string.size()), keep(&string); },
      [&] {
        char* to = string.data();
        for (const Particle& p : laid_out) {
          memcpy(to, p.position, 24);
          memcpy(to + 24, &p.kind, 4);
          to[28] = p.flag;
          to += 29;
        }
        keep(&string);
      });
  type->release();
}

void indexed(size_t count) {
  std::mt19937 random(1);
  std::vector<int> blocks(count), at(count);
  int next = 0;
  for (size_t i = 0; i < count; ++i) {
    blocks[i] = 1 + int(random() % 4);
    at[i] = next + int(random() % 5);
    next = at[i] + blocks[i] + 1;
  }
  Type* type = nullptr;
  if (make_indexed(Form::narrow, int64_t(count), blocks.data(), at.data(),
                   predefined(BasicType::double_), type) != Outcome::ok) {
    return;
  }
  Buffers b(size_t(next), type->size() / 8);
  compare(
      "pack indexed, blocks of 1 to 4 / loop", type->size(),
      [&] { pack(*type, b.laid_out.data(), 1, 0, b.string.data(), type->size()), keep(&b); },
      [&] {
        double* to = b.string.data();
        for (size_t i = 0; i < count; ++i) {
          const double* from = b.laid_out.data() + at[i];
          for (int j = 0; j < blocks[i]; ++j) *to++ = from[j];
        }
        keep(&b);
      });
  type->release();
}

// A reduction reads two strings and writes one, a copy reads one and writes one.
void reduce(ReduceOp op, BasicType type, size_t bytes) {
  const KernelTable* tables[max_tables];
  const size_t usable = usable_tables(tables);
  const BasicInfo& row = info(type);
  std::vector<char> a(bytes), b(bytes), c(bytes);
  for (size_t i = 0; i < bytes; ++i) a[i] = b[i] = char(i % 3);  // small numbers, no NaN
  for (size_t t = 0; t < usable; ++t) {
    const Kernel& kernel = tables[t]->kernels[size_t(op)][size_t(row.machine)];
    if (!kernel.two) continue;
    char name[80];
    snprintf(name, sizeof name, "%s %s (%s) / memcpy", op_name(op), row.name, tables[t]->name);
    compare(
        name, bytes, [&] { kernel.two(a.data(), b.data(), bytes / row.extent), keep(b.data()); },
        [&] { memcpy(c.data(), a.data(), bytes), keep(c.data()); });
  }
}

}  // namespace

int main() {
  printf("%-44s %9s %9s %9s   %5s  %s\n", "ours / reference", "bytes", "GB/s", "ref GB/s", "ratio",
         "quartiles");
  for (size_t bytes : {64, 4096, 65536, 1 << 20}) contiguous(bytes);
  vector<1>("vector, every 2nd double", 8192, 2);
  vector<1>("vector, every 2nd double", 1 << 17, 2);
  vector<1>("vector, a column of 512", 8192, 512);
  vector<2>("vector, 2 of 5 doubles", 8192, 5);
  vector<5>("vector, 5 of 16 doubles", 8192, 16);
  vector<64>("vector, 64 of 100 doubles", 1024, 100);
  records(8192);
  indexed(8192);
  for (size_t bytes : {16384, 1 << 20}) {
    reduce(ReduceOp::sum, BasicType::double_, bytes);
    reduce(ReduceOp::max, BasicType::float_, bytes);
    reduce(ReduceOp::prod, BasicType::c_double_complex, bytes);
    reduce(ReduceOp::min, BasicType::int_, bytes);
    reduce(ReduceOp::lor, BasicType::int_, bytes);
    reduce(ReduceOp::sum, BasicType::long_double, bytes);
    reduce(ReduceOp::minloc, BasicType::double_int, bytes);
  }
}
