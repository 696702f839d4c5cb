// The OpenMP runtime that oneDNN and OpenBLAS are linked with (GCC's), as far as it is told anything. A compiler's own
// omp.h may bring another runtime.
#pragma once

extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int count);
}
