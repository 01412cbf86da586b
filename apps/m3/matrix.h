// The matrices of m3 and the work on them. Pure functions; they know nothing of MPI. All entries
// are small whole numbers, so every product and sum is exact, and a wrong entry is always found.
#pragma once

#include <cstdint>

namespace m3 {

// The consecutive rows of one slave.
struct Slice {
  long first, rows;
};

Slice slice_of(long n, int part, int parts);

// Of the n rows of B only every `thin`-th is other than zero; only those are kept.
inline long kept_rows(long n, long thin) { return (n + thin - 1) / thin; }

// B transposed: row j of `b` is column j of B, kept_rows() long.
void fill_b(double* b, long n, long thin);

// A row of random numbers, others for each `key`.
void fill_row(double* row, long n, long key);

// One row of C = A * B.
void multiply_row(const double* a, const double* b, double* c, long n, long thin);

// w: each row of B, its entries times their weights, added up; `n` numbers, most of them zero if
// thin is above 1. With it a row of C is known well enough to check it: its entries times their
// weights add up to the row of A times w.
void weigh_b(const double* b, double* w, long n, long thin);
double expected_sum(const double* a, const double* w, long n);
double weighted_sum(const double* c, long n);

}  // namespace m3
