"""The command `headway`: tools beside the library, and the measuring library that they share with the
benchmarks. The library itself needs none of it."""
